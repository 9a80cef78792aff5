"""Triage: which projects are refused and why, and limits from what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factory.core.errors import GeneratorError
from generators.repository.runs import Run, RunLimits, RunResult
from generators.repository.triage import Profile, TriageConfig, cached_triage, triage

CONFIG = TriageConfig(min_tests=2, max_suite_ms=1000, max_unstable_percent=25)


class Told:
    """A suite whose runs show what is told: for each run the state of every test and, beside it, other facts."""

    def __init__(self, *states: dict[str, str], ms: tuple[int, ...] = (7, 7, 7, 7), **facts: Any) -> None:
        self.states, self.ms, self.facts = states, ms, facts
        self.asked: list[Run] = []

    def run(self, runs: list[Run], limits: RunLimits, workers: int = 1) -> list[RunResult]:
        self.asked += runs
        known: dict[str, Any] = {"ended": "exit:0", "finished": True, "wall_ms": 500, "errors": ()} | self.facts
        return [
            RunResult(key=run.key, running=None, states=states, ms=dict.fromkeys(states, ms), failures={}, **known)
            for run, states, ms in zip(runs, [*self.states, *[self.states[-1]] * 4][:4], self.ms, strict=True)
        ]


def passing(*names: str, **others: str) -> dict[str, str]:
    return dict.fromkeys(names, "passed") | others


def test_a_clean_suite_is_run_as_it_is_shuffled_and_as_graders_run_it() -> None:
    suite = Told(passing("a", "b", "c"))
    profile = triage(suite, "p==1", CONFIG)  # type: ignore[arg-type]
    assert (list(profile.tests), profile.left_out, profile.suite_ms, profile.runs) == (["a", "b", "c"], {}, 500, 4)
    assert len({run.shuffle for run in suite.asked}) == 3
    assert [run.plain for run in suite.asked].count(True) == 1
    assert not any(run.files for run in suite.asked)


def test_what_else_the_machine_does_changes_no_limit() -> None:
    """Three of four runs beside other work: limits, and with them digests, are those of an idle machine."""
    busy = triage(Told(passing("a", "b"), ms=(900, 2600, 20, 700)), "p==1", CONFIG)  # type: ignore[arg-type]
    idle = triage(Told(passing("a", "b"), ms=(20, 20, 20, 20)), "p==1", CONFIG)  # type: ignore[arg-type]
    assert busy.limits() == idle.limits()


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        (Told({}), "0 tests reported"),
        (Told(passing("a", "b"), errors=("test_a.py: no module x",)), "1 collection errors: test_a.py: no module x"),
        (Told(passing("a", "b"), finished=False, ended="signal:27"), "signal:27"),
        (Told(passing("a", b="failed")), "1 stable tests of 2, fewer than 2"),
        (Told(passing("a", "b", c="failed")), "1 of 3 tests fail or change, c among them"),
        (Told(passing("a", "b", "c"), passing("a", "b", c="failed")), "1 of 3 tests fail or change, c among them"),
        (Told(passing("a", "b", "c"), passing("a", "b")), "1 of 3 tests fail or change, c among them"),
        (Told(passing("a", "b"), wall_ms=1001), "takes 1001 ms, more than 1000"),
    ],
)
def test_a_project_that_can_not_serve_is_refused_with_its_reason(suite: Told, said: str) -> None:
    with pytest.raises(GeneratorError) as caught:
        triage(suite, "p==1", CONFIG)  # type: ignore[arg-type]
    assert str(caught.value).startswith("p==1 is refused: ")
    assert said in str(caught.value)


@pytest.mark.parametrize("state", ["skipped", "xfailed", "xpassed"])
def test_tests_that_never_pass_are_left_out_and_not_called_unstable(state: str) -> None:
    profile = triage(Told(passing("a", "b", c=state, d=state)), "p==1", CONFIG)  # type: ignore[arg-type]
    assert list(profile.tests) == ["a", "b"]
    assert profile.left_out == {"c": state, "d": state}


def test_a_test_that_changes_is_left_out_of_a_project_that_serves() -> None:
    first, later = passing("a", "b", "c", "d"), passing("a", "b", "c", d="failed")
    profile = triage(Told(first, first, later), "p==1", CONFIG)  # type: ignore[arg-type]
    assert list(profile.tests) == ["a", "b", "c"]
    assert profile.left_out == {"d": "failed/passed"}


def test_a_slow_test_may_use_twenty_times_what_it_took_at_least() -> None:
    """The next powers of four are 256 and 4096; what took 250 ms or less has the limit of all."""
    profile = Profile(tests={"quick": 250, "slow": 251, "slower": 1025}, suite_ms=1400)
    limits = profile.limits()
    assert limits.cpu_ms == {"slow": 20 * 256, "slower": 20 * 4096}
    assert limits.other_ms == 20 * 250
    assert limits.cpu_s * 1000 >= 20 * profile.suite_ms
    assert limits.wall_s > limits.cpu_s


def test_a_refusal_is_remembered_and_another_content_is_looked_at_anew(tmp_path: Path) -> None:
    broken, sound = Told({}), Told(passing("b", "a"))
    for _ in range(2):
        with pytest.raises(GeneratorError, match="0 tests reported"):
            cached_triage(broken, "p==1", "1" * 64, CONFIG, tmp_path)  # type: ignore[arg-type]
    assert len(broken.asked) == 4
    first = cached_triage(sound, "p==1", "2" * 64, CONFIG, tmp_path)  # type: ignore[arg-type]
    again = cached_triage(sound, "p==1", "2" * 64, CONFIG, tmp_path)  # type: ignore[arg-type]
    assert again == first and list(again.tests) == ["b", "a"]  # the order of collection: verifiers depend on it
    assert len(sound.asked) == 4
