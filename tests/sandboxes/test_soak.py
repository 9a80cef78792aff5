"""Ten thousand episodes in one process leave no process, mount, file descriptor or folder behind, and no memory."""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from factory.agent.environment import Environment
from factory.core.action import Action
from factory.core.blobs import get_json
from factory.core.demonstration import Demonstration
from factory.core.outcome import OutcomeKind, Termination
from factory.core.task import Task
from generators.terminal import TerminalGenerator
from registry.blobs import FileBlobs
from sandboxes.contract import Backend
from tests.engines import bubblewrap_backend

pytestmark = pytest.mark.long

logger = logging.getLogger(__name__)

EPISODES = int(os.environ.get("FACTORY_TEST_SOAK_EPISODES", "10000"))
SETTLED = EPISODES // 10
"""Episodes after which caches are full and memory must be flat: the thousandth of ten thousand."""
TASKS = 20
"""Tasks taken in turn."""
GROWTH = 8 << 20
"""Most that resident memory may grow after that, bytes, here and in the namespace helper: 930 bytes an episode."""


@dataclass(frozen=True)
class Held:
    """What the process and its helper hold."""

    descriptors: tuple[int, ...]
    """Open file descriptors of each process, this one first."""
    processes: int
    """Descendants, dead ones that nobody reaped among them."""
    mounts: tuple[int, ...]
    """Lines of each process's mount table, without those of a container engine that works beside."""
    paths: int
    """Files and folders below the test's folder: layers, their locks, and blobs."""


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    opened = bubblewrap_backend(tmp_path / "cache")
    yield opened
    opened.close()


def test_nothing_is_left_of_many_episodes(backend: Backend, tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    tasks = [one.task for one in TerminalGenerator().generate(blobs, seed=9, start=0, count=TASKS)]
    begun, scored = time.monotonic(), 0
    before: Held | None = None
    memory: list[tuple[int, ...]] = []
    for number in range(EPISODES):
        scored += episode(tasks[number % TASKS], backend, blobs, number)
        if number + 1 == SETTLED:
            before = settled(tmp_path)
        if number + 1 >= SETTLED and (number + 1) % SETTLED == 0:
            memory.append(resident())
            logger.info("episode %d, %.0f s, resident %s bytes", number + 1, time.monotonic() - begun, memory[-1])
    assert scored == sum(map(graded, range(EPISODES))) > 0
    assert settled(tmp_path) == before
    growth = [last - first for first, last in zip(memory[0], memory[-1], strict=True)]
    assert max(growth) < GROWTH, memory


def episode(task: Task, backend: Backend, blobs: FileBlobs, number: int) -> int:
    """Reset, two commands, a background job now and then; one in ten is graded by both verifiers. 1 when it was scored."""
    first, *_ = Demonstration.from_manifest(get_json(blobs, task.solution)).actions
    environment = Environment(task, backend, blobs)
    try:
        environment.reset(number)
        environment.step(first)
        lingering = "sleep 1000 & " if number % 7 == 0 else ""
        step = environment.step(Action("bash", {"command": f"{lingering}ls -l; echo {number}"}))
        assert step.observation is not None and step.observation.text.endswith(f"{number}\n")
        if not graded(number):
            return 0
        outcome = environment.finish(Termination.SUBMITTED)
        assert outcome.kind is OutcomeKind.SCORED, outcome.fault
        return 1
    finally:
        environment.close()


def graded(number: int) -> bool:
    """Every tenth round of all tasks, the first among them: their end trees are stored before anything is counted."""
    return number // TASKS % 10 == 0


def settled(folder: Path) -> Held:
    """What is held once killed processes had a moment to be reaped: the same twice in a row."""
    gc.collect()
    found = held(folder)
    for _ in range(50):
        time.sleep(0.1)
        again = held(folder)
        if again == found:
            break
        found = again
    return found


def held(folder: Path) -> Held:
    pids = lasting()
    return Held(
        descriptors=tuple(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids),
        processes=len(descendants()),
        mounts=tuple(len(mounts(pid)) for pid in pids),
        paths=sum(1 for _ in folder.rglob("*")),
    )


def mounts(pid: int) -> list[str]:
    return [line for line in Path(f"/proc/{pid}/mounts").read_text().splitlines() if "docker" not in line]


def resident() -> tuple[int, ...]:
    """Resident memory of this process and its helper, bytes."""
    gc.collect()
    pages = os.sysconf("SC_PAGE_SIZE")
    return tuple(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * pages for pid in lasting())


def lasting() -> list[int]:
    """This process and its direct children: the namespace helper."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert children, "the back end has a helper"
    return [os.getpid(), *map(int, children)]


def descendants() -> set[int]:
    """Every process below this one."""
    found: set[int] = set()
    fresh = {os.getpid()}
    while fresh:
        fresh = {
            int(child)
            for pid in fresh
            for task in Path(f"/proc/{pid}/task").glob("*/children")
            for child in task.read_text().split()
        }
        found |= fresh
    return found
