"""Triage: may a project serve? Its suite is run several times, in several orders, before anything is broken."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from factory.core.digest import digest_of
from factory.core.errors import GeneratorError
from factory.records import read_record, write_record
from generators.repository.runs import Run, RunLimits, RunResult, Suite

logger = logging.getLogger(__name__)

VERSION = 3
"""Of the rule; part of the cache's key."""
QUICK_MS = 250
"""A test this quick may use 20 times as much CPU time; slower ones have limits of their own. Limits are part of a task's
identity, and few tests are near this."""


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

    def test_cpu_ms(self, names: Iterable[str]) -> dict[str, int]:
        """CPU limits of tests slower than `QUICK_MS`, by id. In powers of four, so that noise seldom changes one."""
        return {name: 20 * power_of_four(self.tests[name]) for name in names if self.tests[name] > QUICK_MS}

    def suite_s(self) -> int:
        """CPU and wall seconds that a whole run may take: far above what it took, in powers of four."""
        return max(60, power_of_four(self.suite_ms) // 100)

    def limits(self) -> RunLimits:
        """Limits for runs of broken versions, from the durations measured here."""
        return RunLimits(
            cpu_ms=self.test_cpu_ms(self.tests), other_ms=20 * QUICK_MS, cpu_s=self.suite_s(), wall_s=2 * self.suite_s()
        )


def power_of_four(value: int) -> int:
    """The least power of four that is at least `value`."""
    power = 1
    while power < value:
        power *= 4
    return power


def triage(suite: Suite, release: str, config: TriageConfig) -> Profile:
    """Run the clean suite four times: as it is, twice shuffled, and once as graders do. Raises GeneratorError with the figures
    when the project can not serve."""
    wall_s = max(60, config.max_suite_ms // 100)
    limits = RunLimits(cpu_ms={}, other_ms=60_000, cpu_s=wall_s, wall_s=wall_s)
    orders = [
        Run(key="clean"),
        Run(key="shuffled-1", shuffle=1),
        Run(key="shuffled-2", shuffle=2),
        Run(key="plain", plain=True),
    ]
    results = suite.run(orders, limits)
    for result in results:
        if not result.finished or not result.states or result.errors:
            raise GeneratorError(f"{release} is refused: its suite does not run clean ({_figures(result)})")
    profile = _profile(results)
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
    logger.info("%s: %d stable tests of %d, %d ms", release, len(profile.tests), total, profile.suite_ms)
    return profile


def cached_triage(suite: Suite, release: str, content: str, config: TriageConfig, cache: Path) -> Profile:
    """`triage`, remembered in `cache` by the digest of the project's content, so that shards agree; so are refusals."""
    record = cache / f"triage-{digest_of({'content': content, 'config': asdict(config), 'version': VERSION})[:24]}.json"
    held = read_record(record)
    if held is not None:
        if "refused" in held:
            raise GeneratorError(held["refused"])
        return Profile(**{**held, "tests": dict(held["tests"])})
    try:
        profile = triage(suite, release, config)
    except GeneratorError as error:
        write_record(record, {"refused": str(error)})
        raise
    # As a list: a record's keys are sorted, and which tests are held out depends on the order of collection.
    write_record(record, {**asdict(profile), "tests": list(profile.tests.items())})
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


def _figures(result: RunResult) -> str:
    first = result.errors[0] if result.errors else "none"
    return f"{result.key}: {result.ended}, {len(result.states)} tests reported, {len(result.errors)} collection errors: {first}"
