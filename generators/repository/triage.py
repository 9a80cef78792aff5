"""Triage: may a project serve? Its suite is run several times, in several orders, before anything is broken."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from factory.core.digest import digest_of
from factory.core.errors import GeneratorError
from factory.records import read_record, write_record
from generators.repository.coverage import Coverage, merged
from generators.repository.runs import Run, RunLimits, RunResult, Suite

logger = logging.getLogger(__name__)

VERSION = 3
"""Of the rule; part of the cache's key."""
QUICK_MS = 250
"""A test this quick may use 20 times as much CPU time; slower ones have limits of their own. Limits are part of a task's
identity, and few tests are near this."""
SCREENED_MS = 100
"""The same for runs that only look whether a change makes a task: a test this quick has the limit of all."""
TRACED = 3
"""Traced runs, each in another order."""


@dataclass(frozen=True, kw_only=True)
class TriageConfig:
    """What a project must offer."""

    min_tests: int = 20
    """Stable passing tests."""
    max_suite_ms: int = 20_000
    """Wall time of one run of the suite, milliseconds."""
    max_unstable_percent: int = 10
    """Tests that fail or change between clean runs, percent of all collected."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What triage measured."""

    tests: dict[str, int]
    """Stable passing tests in the order of collection: id to the shortest duration seen, milliseconds: what else runs on the
    machine only makes a test longer, and must not change limits."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Other tests: id to the states seen (`passed/failed`, `skipped`)."""
    suite_ms: int = 0
    """Shortest wall time of one run, milliseconds."""
    runs: int = 0
    coverage: Coverage = field(default_factory=Coverage)
    """Which tests execute which lines; without any traced run to go by, its `tests` are empty."""
    how: str = "collected"
    """The quickest way to run the suite that gives what a new interpreter gives: `collected`, `forked` or `fresh`."""
    why: str = ""
    """What speaks against a quicker one."""

    def test_cpu_ms(self, names: Iterable[str]) -> dict[str, int]:
        """CPU limits of tests slower than `QUICK_MS`, by id. In powers of four, so that noise seldom changes one."""
        return {name: 20 * power_of_four(self.tests[name]) for name in names if self.tests[name] > QUICK_MS}

    def suite_s(self) -> int:
        """CPU and wall seconds that a whole run may take: far above what it took, in powers of four."""
        return max(60, power_of_four(self.suite_ms) // 100)

    def limits(self) -> RunLimits:
        """Limits for runs of broken versions, from the durations measured here."""
        slow = {name: 20 * power_of_four(ms) for name, ms in self.tests.items() if ms > SCREENED_MS}
        return RunLimits(
            cpu_ms=slow,
            other_ms=20 * SCREENED_MS,
            import_ms=max(5_000, 5 * power_of_four(self.suite_ms)),
            cpu_s=self.suite_s(),
            wall_s=2 * self.suite_s(),
            stall_s=max(10, 5 * power_of_four(max(self.tests.values(), default=0)) // 1000),
        )


def power_of_four(value: int) -> int:
    """The least power of four that is at least `value`."""
    power = 1
    while power < value:
        power *= 4
    return power


ORDERS = [
    Run(key="clean"),
    Run(key="shuffled-1", shuffle=1),
    Run(key="shuffled-2", shuffle=2),
    Run(key="fresh", how="fresh", plain=True),
    Run(key="collected", how="collected"),
    *(Run(key=f"traced-{number}", how="traced", shuffle=3 + number) for number in range(TRACED)),
]
"""The runs of the clean suite."""


def triage(suite: Suite, release: str, config: TriageConfig) -> Profile:
    """Run the clean suite: as it is, shuffled, as graders do, with its tests collected before the fork, and traced.

    Raises GeneratorError with the figures when the project can not serve.
    """
    wall_s = max(60, config.max_suite_ms // 100)
    limits = RunLimits(cpu_ms={}, other_ms=60_000, cpu_s=wall_s, wall_s=wall_s)
    results = {result.key: result for result in suite.run(ORDERS, limits)}
    fresh = results["fresh"]
    if not _ran(fresh):
        raise GeneratorError(f"{release} is refused: its suite does not run clean ({_figures(fresh)})")
    how, why = _quickest(results)
    plain = [results[key] for key in ("clean", "shuffled-1", "shuffled-2")]
    if how == "fresh":
        plain = suite.run(
            [replace(run, how="fresh") for run in ORDERS if run.key in ("clean", "shuffled-1", "shuffled-2")], limits
        )
    for result in plain:
        if not _ran(result):
            raise GeneratorError(f"{release} is refused: its suite does not run clean ({_figures(result)})")
    profile = replace(_profile([*plain, fresh]), how=how, why=why)
    traced = [result for result in results.values() if result.how == "traced"]
    profile = replace(profile, coverage=_coverage(profile, traced))
    unstable = [name for name, states in profile.left_out.items() if states not in ("skipped", "xfailed", "xpassed")]
    total = len(profile.tests) + len(profile.left_out)
    if len(profile.tests) < config.min_tests:
        raise GeneratorError(
            f"{release} is refused: {len(profile.tests)} stable tests of {total}, fewer than {config.min_tests}"
        )
    if 100 * len(unstable) > config.max_unstable_percent * total:
        raise GeneratorError(f"{release} is refused: {len(unstable)} of {total} tests fail or change, {unstable[0]} among them")
    if profile.suite_ms > config.max_suite_ms:
        raise GeneratorError(f"{release} is refused: its suite takes {profile.suite_ms} ms, more than {config.max_suite_ms}")
    said = f"{profile.how} ({profile.why})" if profile.why else profile.how
    logger.info("%s: %d stable tests of %d, %d ms, %s", release, len(profile.tests), total, profile.suite_ms, said)
    return profile


def cached_triage(suite: Suite, release: str, content: str, config: TriageConfig, cache: Path) -> Profile:
    """`triage`, remembered in `cache` by the digest of the project's content, so that shards agree; so are refusals."""
    record = cache / f"triage-{digest_of({'content': content, 'config': asdict(config), 'version': VERSION})[:24]}.json"
    held = read_record(record)
    if held is not None:
        if "refused" in held:
            raise GeneratorError(held["refused"])
        return Profile(**{**held, "coverage": _read_coverage(held["coverage"])})
    try:
        profile = triage(suite, release, config)
    except GeneratorError as error:
        write_record(record, {"refused": str(error)})
        raise
    write_record(record, asdict(profile))
    return profile


def _profile(results: list[RunResult]) -> Profile:
    tests: dict[str, int] = {}
    left_out: dict[str, str] = {}
    for name in results[0].states:
        states = {result.states.get(name, "missing") for result in results}
        if states == {"passed"}:
            tests[name] = min(result.ms[name] for result in results)
        else:
            left_out[name] = "/".join(sorted(states))
    return Profile(tests=tests, left_out=left_out, suite_ms=min(result.wall_ms for result in results), runs=len(results))


def _ran(result: RunResult) -> bool:
    return result.finished and bool(result.states) and not result.errors


def _quickest(results: dict[str, RunResult]) -> tuple[str, str]:
    """The quickest way whose run shows what that of a new interpreter shows, and what is wrong with the quicker ones.

    Tests that change from run to run anyway speak against none.
    """
    changing = {
        name
        for name in results["fresh"].states
        if len({results[key].states.get(name) for key in ("clean", "shuffled-1", "shuffled-2")}) > 1
    }
    said = []
    for how, key in (("collected", "collected"), ("forked", "clean")):
        result = results[key]
        differ = [
            name for name, state in results["fresh"].states.items() if name not in changing and result.states.get(name) != state
        ]
        if result.how != how:
            said.append(result.why)
        elif not _ran(result):
            said.append(f"{how}: {_figures(result)}")
        elif differ:
            said.append(f"{how}: {len(differ)} tests differ, {differ[0]} among them")
        else:
            return how, "; ".join(said)
    return "fresh", "; ".join(said)


def _coverage(profile: Profile, traced: list[RunResult]) -> Coverage:
    """What the traced runs tell; nothing when one of them did not come to its end."""
    traces = [result.trace for result in traced if result.trace is not None]
    if len(traces) < TRACED:
        return Coverage()
    failed = [name for name in profile.tests if any(result.states.get(name) != "passed" for result in traced)]
    return merged(list(profile.tests), traces, failed)


def _read_coverage(held: dict[str, Any]) -> Coverage:
    return Coverage(**{**held, "tests": tuple(held["tests"])})


def _figures(result: RunResult) -> str:
    first = result.errors[0] if result.errors else "none"
    return f"{result.key}: {result.ended}, {len(result.states)} tests reported, {len(result.errors)} collection errors: {first}"
