"""From a part of a change to a candidate: the code before it, two verifiers, the symptom and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from factory.core.blobs import BlobStore
from factory.core.digest import Json
from factory.core.files import FileTree
from factory.core.streams import stream
from factory.core.task import Candidate, Origin, SplitKeys
from generators.repository.candidates import VERSION, steady_failures
from generators.repository.config import RepositoryConfig
from generators.repository.history.pieces import changed_count, patch
from generators.repository.history.sources import Change
from generators.repository.history.splitting import Part
from generators.repository.history.tasks import Halves, Sides, Texts
from generators.repository.instruction import evidence, instruction, leaks
from generators.repository.runs import TREE, Failure, RunResult
from generators.repository.sites import Edit, functions_of
from generators.repository.solution import changed_lines

if TYPE_CHECKING:
    from generators.repository.generator import Prepared


@dataclass(frozen=True, kw_only=True)
class Origins:
    """Where the candidates of one number come from."""

    seed: int
    number: int
    change: Change
    written: str = ""
    """Path of the test file that was written for the change; empty where its own tests tell."""


def candidate(
    origins: Origins, place: int, part: Part, before: FileTree, prepared: Prepared, config: RepositoryConfig, blobs: BlobStore
) -> Candidate | None:
    """The candidate of part `place` of a change; None when no failure shows it, or showing it would give the fix away.

    `before` is the whole project before the change, `prepared` the one after it.
    """
    change, project = origins.change, prepared.checkout.project
    rng = stream(origins.seed, "repository history", project.name, origins.number, place)
    halves = Halves.deal(part.judged.fail, part.judged.keep, rng)
    text = symptom(change, part, halves.shown_fail, prepared.tests)
    if text is None:
        return None
    sides = Sides(before=before, prepared=prepared, broken=part.broken, fixed=part.fixed)
    return Candidate(
        task=sides.task(text, halves, config, blobs),
        origin=Origin(
            generator="repository",
            generator_version=VERSION,
            seed=origins.seed,
            operator=change.operator,
            site=first_place(part, change.operator).site,
            source=change.described,
            parameters=_parameters(origins, place, part, project.licence),
        ),
        name=f"repository/{project.name}/{change.operator}/{origins.number:04d}" + (f"-{place + 1}" if place else ""),
        families=(change.operator,),
        keys=SplitKeys(keys=(project.key,)),
        text=patch(part.broken, part.fixed),
    )


def _parameters(origins: Origins, place: int, part: Part, licence: str) -> dict[str, Json]:
    change = origins.change
    return {
        "number": origins.number,
        "part": place,
        "before": change.before,
        "after": change.after,
        "subject": change.subject,
        "licence": licence,
        "explicitness": "symptom",
        "written_test": origins.written,
        "changed_files": len(part.broken),
        "changed_lines": changed_count(part.broken, part.fixed),
        "fail_to_pass": len(part.judged.fail),
        "pass_to_pass": len(part.judged.keep),
        "single_test": len(part.judged.fail) == 1,
    }


def symptom(change: Change, part: Part, shown_fail: tuple[str, ...], tests: dict[str, str]) -> str | None:
    """The instruction: how the visible tests fail; None when none shows it, or it would hold a line of the fix."""
    failures = [*steady_failures(part.result, shown_fail), *uncollected(part.result, shown_fail)]
    shown = evidence(failures, tests)
    if shown is None:
        return None
    text = instruction(
        change.described,
        first_place(part, change.operator),
        "",
        explicitness="symptom",
        failing=len(part.judged.fail),
        shown=shown,
        excerpt_lines=0,
    )
    return None if given_away(text, part.broken, part.fixed) else text


def given_away(text: str, broken: Texts, fixed: Texts) -> bool:
    """Whether an instruction holds a line that only the fixed files have."""
    known = "\n".join(text_ for text_ in broken.values() if text_)
    right = [line for path in fixed for line in _lines_changed(broken.get(path), fixed[path])[1]]
    return leaks(text, right, known)


def _lines_changed(broken: str | None, fixed: str | None) -> tuple[list[str], list[str]]:
    """`changed_lines` of files that may end in different ways or be absent."""
    texts = [text if not text or text.endswith("\n") else f"{text}\n" for text in (broken or "", fixed or "")]
    return changed_lines(texts[0] or "\n", texts[1] or "\n")


def first_place(part: Part, operator: str) -> Edit:
    """Where the first file changes, in the form of an edit; its line and function are those before the fix."""
    path = min(part.broken)
    broken, fixed = part.broken[path] or "", part.fixed[path] or ""
    same = next((index for index, (one, two) in enumerate(zip_longest(broken, fixed)) if one != two), 0)
    line = broken.count("\n", 0, same) + 1
    around = next((one for one in functions_of(broken) if one.first <= line <= one.last), None)
    return Edit(
        operator=operator,
        path=path,
        line=line,
        qualname=around.qualname if around else "<module>",
        start=same,
        end=len(broken),
        new=fixed[same:],
        one_line=False,
        function=(around.first, around.last) if around else (line, line),
    )


_ERROR = re.compile(r"^E\s+(\w[\w.]*): (.*)$", re.MULTILINE)


def uncollected(result: RunResult, names: Iterable[str]) -> list[Failure]:
    """The failure of each test file that could not be imported and holds some of the tests, at the line of its import."""
    found = []
    wanted = {name.partition("::")[0] for name in names}
    for error in result.errors:
        file, _, text = error.partition(": ")
        told = _ERROR.findall(text)
        lines = re.findall(rf"^{re.escape(file)}:(\d+): ", text, re.MULTILINE)
        if file in wanted and told and lines:
            kind, message = told[-1]
            message = re.sub(r" \(/[^)]*\)$", "", message).replace(f"{TREE}/", "").replace(TREE, ".")
            found.append(Failure(kind.rpartition(".")[2], message, file, int(lines[-1])))
    return found
