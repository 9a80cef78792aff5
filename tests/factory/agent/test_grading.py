from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest

from factory.agent.grading import LastingGrade, SharedGrade
from factory.core.blobs import MemoryBlobs
from factory.core.errors import VerifierError
from factory.core.outcome import Verdict
from factory.core.task import VerifierSpec
from sandboxes.verification.bundles import bundle
from tests.factory.agent.samples import task

SPEC = task(MemoryBlobs()).environment
VERIFIER = VerifierSpec(bundle="1" * 64)


class Counting:
    """Grades slowly and counts; the first `failing` runs raise."""

    def __init__(self, failing: int = 0) -> None:
        self.runs, self.failing, self.lock = 0, failing, threading.Lock()
        self.asked: list[list[VerifierSpec]] = []

    def __call__(
        self, backend: Any, blobs: Any, environment: Any, verifiers: Sequence[VerifierSpec], *, start: str, end: str
    ) -> tuple[Verdict, ...]:
        with self.lock:
            self.runs += 1
            number = self.runs
            self.asked.append(list(verifiers))
        time.sleep(0.05)
        if number <= self.failing:
            raise VerifierError(f"run {number}")
        return tuple(Verdict(checks=(), verifier=verifier.bundle, start=start, end=end) for verifier in verifiers)


def ask(grade: SharedGrade, **change: Any) -> Verdict:
    given = {"environment": SPEC, "verifier": VERIFIER, "start": "s", "end": "e"} | change
    verifiers = [given["verifier"]]
    return grade(cast(Any, None), MemoryBlobs(), given["environment"], verifiers, start=given["start"], end=given["end"])[0]


def test_equal_questions_from_many_threads_run_once() -> None:
    counting = Counting()
    grade = SharedGrade(counting)
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda _: ask(grade), range(8)))
    assert counting.runs == grade.runs == 1
    assert all(verdict is verdicts[0] for verdict in verdicts)


@pytest.mark.parametrize(
    "change",
    [
        {"end": "other"},
        {"start": "other"},
        {"verifier": replace(VERIFIER, bundle="2" * 64)},
        {"verifier": replace(VERIFIER, wall_ms=1)},
        {"environment": replace(SPEC, hash_seed=1)},
    ],
)
def test_any_difference_is_another_question(change: dict[str, Any]) -> None:
    counting = Counting()
    grade = SharedGrade(counting)
    ask(grade)
    ask(grade, **change)
    assert counting.runs == 2


def test_a_fault_reaches_all_who_waited_and_is_forgotten() -> None:
    counting = Counting(failing=1)
    grade = SharedGrade(counting)

    def attempt(_: int) -> str:
        try:
            return ask(grade).end
        except VerifierError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(attempt, range(4))) == ["run 1"] * 4
    assert ask(grade).end == "e"
    assert counting.runs == 2


def test_only_what_nobody_asked_before_is_run() -> None:
    counting, second = Counting(), replace(VERIFIER, bundle="2" * 64)
    grade = SharedGrade(counting)
    first = ask(grade)
    both = grade(cast(Any, None), MemoryBlobs(), SPEC, [VERIFIER, second], start="s", end="e")
    assert both[0] is first and both[1].verifier == second.bundle
    assert (counting.runs, counting.asked, grade.runs) == (2, [[VERIFIER], [second]], 2)


def test_the_verdict_longest_unused_makes_room() -> None:
    counting = Counting()
    grade = SharedGrade(counting, most=2)
    for end in ("a", "b", "a", "c", "a"):
        ask(grade, end=end)
    assert counting.runs == 3
    ask(grade, end="b")
    assert counting.runs == 4


def test_what_only_looks_lasts_and_what_runs_code_does_not() -> None:
    blobs, counting = MemoryBlobs(), Counting()
    looks = VerifierSpec(bundle=bundle(blobs, checker="files", spec={}))
    runs = VerifierSpec(bundle=bundle(blobs, checker="pytest_checker", spec={}))
    grade = LastingGrade(counting)
    for verifier in (looks, runs, looks, runs):
        grade(cast(Any, None), blobs, SPEC, [verifier], start="s", end="e")
    assert counting.asked == [[looks], [runs], [runs]]


def test_the_loop_and_the_formats_import_no_engine() -> None:
    code = (
        "import sys, factory.agent.rollout, factory.agent.formats.chat, factory.agent.formats.tiny\n"
        "print(sorted({'torch', 'vllm', 'transformers', 'prefect', 'httpx'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
