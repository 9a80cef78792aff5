"""From a validated edit to a candidate: the broken tree, two verifiers, the instruction and the solution."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, replace

from factory.core.blobs import BlobStore, put_json
from factory.core.digest import Digest, Json
from factory.core.files import Entry, EntryKind
from factory.core.streams import stream
from factory.core.task import Candidate, EnvironmentSpec, Mount, Origin, SplitKeys, Task, TaskKind, VerifierSpec
from generators.repository.config import RepositoryConfig
from generators.repository.evidence import evidence
from generators.repository.issue import Writer, issue
from generators.repository.operators import OPERATORS
from generators.repository.projects import NEVER_SOURCE, Checkout
from generators.repository.runs import Failure, RunResult
from generators.repository.sites import Edit
from generators.repository.solution import changed_lines, restoring
from generators.repository.triage import QUICK_MS, Profile
from sandboxes.contract import DEPENDENCIES
from sandboxes.verification.bundles import bundle

VERSION = "1"
"""Of the generator: part of every origin."""
CONTEXT = 6
"""Lines around an edit that are compared with other texts."""
VERIFIER_SPARE_MS = 30_000
"""What a verifier may take beyond its run of the tests, milliseconds."""


@dataclass(frozen=True)
class Judged:
    """What validation says of an edit."""

    fail: tuple[str, ...]
    """FAIL_TO_PASS: tests that pass before the edit and not after."""
    keep: tuple[str, ...]
    """PASS_TO_PASS: tests that pass before and after."""
    fault: str
    """Why the edit makes no task: `survived`, `hang`, `crash`, `import`, `unstable` or `nothing passes`; empty otherwise."""


def judge(profile: Profile, result: RunResult) -> Judged:
    """Compare two runs of the broken project, in different orders, with the profile of the clean one.

    Tests that the two runs tell differently are in neither list.
    """
    again = result.again
    fail = tuple(name for name in profile.tests if not any(_passed(run, name) for run in (result, again)))
    keep = tuple(name for name in profile.tests if all(_passed(run, name) for run in (result, again)))
    if result.hung or (again is not None and again.hung):
        fault = "hang"
    elif result.errors:
        fault = "import"
    elif not result.finished or (fail and again is None) or (again is not None and not again.finished):
        fault = "crash"
    elif again is None:
        fault = "survived"
    elif not fail:
        fault = "unstable"
    else:
        fault = "" if keep else "nothing passes"
    return Judged(fail, keep, fault)


def _passed(run: RunResult | None, name: str) -> bool:
    return run is not None and run.states.get(name) == "passed"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One number of the series with all that its candidate is made of."""

    seed: int
    number: int
    checkout: Checkout
    profile: Profile
    edit: Edit
    original: str
    """Text of the edited file before the edit."""
    tests: dict[str, str]
    """Test files by path."""
    mount: Mount

    @property
    def broken(self) -> str:
        return self.edit.applied(self.original)


def candidate(
    draft: Draft,
    judged: Judged,
    result: RunResult,
    config: RepositoryConfig,
    blobs: BlobStore,
    writer: Writer | None = None,
) -> Candidate | None:
    """The candidate of a judged edit; None when its instruction would be empty of evidence or give the fix away. `writer` is
    the model that writes issue texts, where there is one.

    FAIL_TO_PASS and PASS_TO_PASS are dealt out to the visible and the held-out verifier. A bug that a single test sees
    has that test in both, and is marked `single_test`.
    """
    project, edit = draft.checkout.project, draft.edit
    rng = stream(draft.seed, "repository", project.name, draft.number)
    explicitness = rng.choice(config.explicitness)
    shown_fail, hidden_fail = _dealt(judged.fail, rng.random() < 0.5)
    shown_keep, hidden_keep = _dealt(judged.keep, rng.random() < 0.5)
    shown = evidence(steady_failures(result, shown_fail), draft.tests)
    if shown is None:
        return None
    told = issue(
        project.release,
        edit,
        draft.broken,
        draft.original,
        explicitness=explicitness,
        failing=len(judged.fail),
        shown=shown,
        excerpt_lines=config.excerpt_lines,
        seed=draft.seed,
        writer=writer,
    )
    if not told.text:
        return None
    task = Task(
        kind=TaskKind.REPOSITORY,
        instruction=told.text,
        environment=EnvironmentSpec(
            image=config.image,
            files=_broken_tree(draft, blobs),
            mounts=(draft.mount,),
            tools=("bash", "edit", "submit"),
            limits=config.limits,
        ),
        verifier=_verifier(draft, shown_fail, shown_keep, blobs),
        held_out=_verifier(draft, hidden_fail or shown_fail, hidden_keep, blobs),
        solution=put_json(blobs, restoring(edit.path, draft.broken, draft.original).manifest()),
    )
    parameters: dict[str, Json] = {
        "number": draft.number,
        "revision": draft.checkout.revision,
        "licence": project.licence,
        "what": OPERATORS[edit.operator].what,
        "explicitness": explicitness,
        "excerpt_lines": config.excerpt_lines,
        "instruction": told.parameters,
        "one_line": edit.one_line,
        "fail_to_pass": len(judged.fail),
        "pass_to_pass": len(judged.keep),
        "single_test": len(judged.fail) == 1,
    }
    return Candidate(
        task=task,
        origin=Origin(
            generator="repository",
            generator_version=VERSION,
            seed=draft.seed,
            operator=edit.operator,
            site=edit.site,
            source=project.release,
            parameters=parameters,
        ),
        name=f"repository/{project.name}/{edit.operator}/{draft.number:04d}",
        families=(edit.operator,),
        keys=SplitKeys(keys=(project.key,)),
        text=compared(edit, draft.original, *changed_lines(draft.broken, draft.original)),
    )


def steady_failures(result: RunResult, names: Iterable[str]) -> list[Failure]:
    """Failures as far as both runs tell them in the same words, without lines that name the day: the rest would not come
    out twice. One that differs from its first line on is left out."""
    again = result.again.failures if result.again is not None else {}
    days = [str(datetime.date.today() + datetime.timedelta(days=offset)) for offset in (-1, 0, 1)]
    found = []
    for first, second in ((result.failures.get(name), again.get(name)) for name in names):
        if first is None or second is None or (first.type, first.file, first.line) != (second.type, second.file, second.line):
            continue
        message = _steady_head(first.message, second.message, days)
        if message or not first.message:
            found.append(replace(first, message=message))
    return found


def _steady_head(first: str, second: str, days: list[str]) -> str:
    kept = []
    for line, other in zip(first.split("\n"), second.split("\n"), strict=False):
        if line != other or any(day in line for day in days):
            break
        kept.append(line)
    return "\n".join(kept)


def _dealt(names: tuple[str, ...], second_first: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Every other one to each side; a single one to the first."""
    sides = names[::2], names[1::2]
    return (sides[1], sides[0]) if second_first and sides[1] else sides


def _broken_tree(draft: Draft, blobs: BlobStore) -> Digest:
    data = draft.broken.encode()
    known = draft.checkout.tree[draft.edit.path]
    entry = Entry(EntryKind.FILE, blobs.put(data), len(data), known.executable)
    return draft.checkout.environment_tree().merged({draft.edit.path: entry}).save(blobs)


def _verifier(draft: Draft, fail: tuple[str, ...], keep: tuple[str, ...], blobs: BlobStore) -> VerifierSpec:
    """The bundle of the pytest checker for these tests, in the order of collection; what failed before is audited."""
    project, profile = draft.checkout.project, draft.profile
    asked = {*fail, *keep}
    names = [name for name in profile.tests if name in asked]
    files = list(dict.fromkeys(name.partition("::")[0] for name in names))
    run_ms = 1000 * profile.suite_s()
    spec: dict[str, Json] = {
        "sources": project.sources,
        "sealed": project.tests,
        "never": NEVER_SOURCE,
        "path": project.path,
        "late": [DEPENDENCIES],
        "options": project.options,
        "files": [*files],
        "tests": [*names],
        "audit": [name for name in names if name in fail],
        "cpu_ms": profile.test_cpu_ms(names),
        "other_ms": 20 * QUICK_MS,
        "run_ms": run_ms,
        "cpu_s": profile.suite_s(),
    }
    tree = bundle(blobs, checker="pytest_checker", spec=spec, files=draft.checkout.sealed_tree())
    return VerifierSpec(bundle=tree, wall_ms=run_ms + VERIFIER_SPARE_MS)


def compared(edit: Edit, original: str, wrong: list[str], right: list[str]) -> str:
    """What contamination and near-duplicate checks see: the place, the code around the edit, and the edit."""
    lines = original.split("\n")
    around = lines[max(0, edit.line - 1 - CONTEXT) : edit.line + CONTEXT]
    return "\n".join([f"{edit.path} {edit.qualname}", *around, "wrong:", *wrong, "right:", *right])
