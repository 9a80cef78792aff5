"""From a part of a change to a candidate: the code before it, two verifiers, the symptom and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from factory.core.blobs import BlobStore, put_json
from factory.core.digest import Json
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.streams import stream
from factory.core.task import Candidate, EnvironmentSpec, Origin, SplitKeys, Task, TaskKind
from generators.repository.candidates import VERSION, dealt, steady_failures, verifier
from generators.repository.config import RepositoryConfig
from generators.repository.history.pieces import changed_count, patch
from generators.repository.history.sources import Change
from generators.repository.history.splitting import Part
from generators.repository.instruction import evidence, instruction, leaks
from generators.repository.runs import TREE, Failure, RunResult
from generators.repository.sites import Edit, functions_of
from generators.repository.solution import changed_lines, restoring_files

if TYPE_CHECKING:
    from generators.repository.generator import Prepared

Texts = Mapping[str, str | None]


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
    change, project, checkout = origins.change, prepared.checkout.project, prepared.checkout
    rng = stream(origins.seed, "repository history", project.name, origins.number, place)
    shown_fail, hidden_fail = dealt(part.judged.fail, rng.random() < 0.5)
    shown_keep, hidden_keep = dealt(part.judged.keep, rng.random() < 0.5)
    edit = first_place(part, change.operator)
    failures = [*steady_failures(part.result, shown_fail), *uncollected(part.result, shown_fail)]
    shown = evidence(failures, prepared.tests)
    if shown is None:
        return None
    failing = len(part.judged.fail)
    text = instruction(change.described, edit, "", explicitness="symptom", failing=failing, shown=shown, excerpt_lines=0)
    if given_away(text, part.broken, part.fixed):
        return None
    solution = restoring_files(part.broken, part.fixed)
    files = environment_tree(before, prepared, part.broken, blobs).save(blobs)
    turns = max(config.limits.turns, 2 * len(solution.actions))
    task = Task(
        kind=TaskKind.REPOSITORY,
        instruction=text,
        environment=EnvironmentSpec(
            image=config.image,
            files=files,
            mounts=(prepared.mount,),
            tools=("bash", "edit", "submit"),
            limits=replace(config.limits, turns=turns),
        ),
        verifier=verifier(checkout, prepared.profile, shown_fail, shown_keep, blobs),
        held_out=verifier(checkout, prepared.profile, hidden_fail or shown_fail, hidden_keep, blobs),
        solution=put_json(blobs, solution.manifest()),
    )
    diff = patch(part.broken, part.fixed)
    parameters: dict[str, Json] = {
        "number": origins.number,
        "part": place,
        "before": change.before,
        "after": change.after,
        "subject": change.subject,
        "licence": project.licence,
        "explicitness": "symptom",
        "written_test": origins.written,
        "changed_files": len(part.broken),
        "changed_lines": changed_count(part.broken, part.fixed),
        "fail_to_pass": failing,
        "pass_to_pass": len(part.judged.keep),
        "single_test": failing == 1,
    }
    return Candidate(
        task=task,
        origin=Origin(
            generator="repository",
            generator_version=VERSION,
            seed=origins.seed,
            operator=change.operator,
            site=edit.site,
            source=change.described,
            parameters=parameters,
        ),
        name=f"repository/{project.name}/{change.operator}/{origins.number:04d}" + (f"-{place + 1}" if place else ""),
        families=(change.operator,),
        keys=SplitKeys(keys=(project.key,)),
        text=diff,
    )


def environment_tree(before: FileTree, prepared: Prepared, broken: Texts, blobs: BlobStore) -> FileTree:
    """What the agent gets: no tests, the sources after the change but for `broken`, and what lies outside the source folders
    as it was before: a list of changes tells what was done."""
    checkout = prepared.checkout
    tree, project = checkout.environment_tree(), checkout.project
    outside = {path for path in {*tree, *before} if not project.is_test(path) and not _below(path, project.sources)}
    tree = tree.without(*outside, *broken).merged({path: before[path] for path in outside if path in before})
    written = {}
    for path, text in broken.items():
        if text is not None:
            data = text.encode()
            known = before.get(path) or checkout.tree.get(path)
            written[path] = Entry(EntryKind.FILE, blobs.put(data), len(data), known is not None and known.executable)
    return tree.merged(written)


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


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
