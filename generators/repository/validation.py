"""Validation: is a change of the sources seen by the tests, and by which, alike in two orders and, for a share, in a new
process?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from factory.core.errors import UserError
from generators.repository.runs import Run, RunResult
from generators.repository.selection import select
from generators.repository.triage import Profile

BREAKAGES = ("import", "hang", "crash", "fixture")
"""What a change can break beside tests: something is not collected, a test hits its limit, a process ends, a set-up fails."""


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """How broken versions are validated."""

    kept: tuple[str, ...] = ("fixture",)
    """Breakages that make a task all the same: of `import`, `hang`, `crash` and `fixture`."""
    fresh_percent: int = 5
    """Share of the changes that tests see which are run in a new interpreter as well, percent; those with a risk always are."""
    whole_suite: bool = False
    """Confirm by the whole suite in another order, not only by what failed and what the change can not reach."""

    def __post_init__(self) -> None:
        for name in self.kept:
            if name not in BREAKAGES:
                raise UserError("repository.validation.kept", name, f"one of {', '.join(BREAKAGES)}")
        if not 0 <= self.fresh_percent <= 100:
            raise UserError("repository.validation.fresh_percent", self.fresh_percent, "from 0 to 100")


def planned(
    key: str,
    files: Mapping[str, str],
    *,
    profile: Profile,
    sources: Mapping[str, str],
    config: ValidationConfig,
    drawn: bool,
) -> Run:
    """The run that validates new texts of some files; `drawn` says that it is of the share confirmed in a new interpreter."""
    chosen, risks = None, ()
    if profile.coverage.tests:
        found = select(profile.coverage, sources, files)
        chosen, risks = found.tests, found.risks
    wanted = None if chosen is None else tuple(name for name in profile.tests if name in chosen)
    return Run(
        key=key,
        files=files,
        how=profile.how,
        wanted=wanted,
        confirm=tuple(profile.tests),
        whole=config.whole_suite,
        fresh=(drawn or bool(risks)) and profile.how != "fresh",
    )


@dataclass(frozen=True)
class Judged:
    """What validation says of a change."""

    fail: tuple[str, ...]
    """FAIL_TO_PASS: tests that pass before the change and in no run after it. Up to where a process hung or crashed."""
    keep: tuple[str, ...]
    """PASS_TO_PASS: tests that pass before it and in every run after it."""
    fault: str
    """Why the change makes no task: `survived`, a breakage that is not kept, `unstable` or `nothing passes`; empty
    otherwise."""
    breakage: str = ""
    """One of `BREAKAGES`, or empty."""


def judge(profile: Profile, result: RunResult, kept: tuple[str, ...] = ("fixture",)) -> Judged:
    """Compare the runs of a changed project, in different orders, with the profile of the clean one.

    Tests that two runs tell differently are in neither list; so are those that no run came to.
    """
    parts = (result, *result.again)
    asked = [None if part.asked is None else frozenset(part.asked) for part in parts]
    outcomes = {
        name: [
            passed
            for part, ids in zip(parts, asked, strict=True)
            if (ids is None or name in ids) and (passed := _passed(part, name)) is not None
        ]
        for name in profile.tests
    }
    fail = tuple(name for name, seen in outcomes.items() if seen and not any(seen))
    keep = tuple(name for name, seen in outcomes.items() if seen and all(seen))
    breakage = next((part.breakage for part in parts if part.breakage), "")
    if not breakage and any(part.states.get(name) == "error" for part in parts for name in fail):
        breakage = "fixture"
    if breakage and breakage not in kept:
        fault = breakage
    elif not fail:
        fault = "unstable" if result.again else "survived"
    else:
        fault = "" if keep else "nothing passes"
    return Judged(fail, keep, fault, breakage)


def _passed(part: RunResult, name: str) -> bool | None:
    """Whether a test passed in a run; None when the run ended before it."""
    state = part.states.get(name)
    if state is None and name not in part.stopped and part.breakage in ("hang", "crash"):
        return None
    return state == "passed"


def disagreement(profile: Profile, result: RunResult) -> int | None:
    """How many tests the run in a new interpreter tells otherwise than the forks do; None when there was none."""
    fresh = next((part for part in result.again if part.part == "fresh"), None)
    if fresh is None:
        return None
    forked = judge(profile, replace(result, again=tuple(part for part in result.again if part.part != "fresh")))
    failed = {name for name in profile.tests if _passed(fresh, name) is False}
    return len(failed ^ set(forked.fail))
