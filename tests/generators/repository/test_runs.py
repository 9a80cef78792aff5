"""Runs of a suite in real sandboxes: threads, daemons and waiting in the project, and suites without tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import GeneratorError
from generators.repository.projects import Project, check_out
from generators.repository.runs import Run, RunLimits, Suite
from generators.repository.triage import TriageConfig, triage
from sandboxes.contract import Backend
from tests.generators.repository.conftest import mount

Made = Callable[[str, str], Suite]
LIMITS = RunLimits(cpu_ms={}, other_ms=500, cpu_s=20, wall_s=40)


@pytest.fixture
def made(downloads: Path, backend: Backend, store: MemoryBlobs, tmp_path: Path) -> Made:
    """A project of one module and one test file, ready to be run."""

    def suite(module: str, tests: str) -> Suite:
        for path, text in {"p/box.py": module, "p/tests/test_box.py": tests}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        project = Project(
            name="box", version="1", folder=str(tmp_path / "p"), sources=("box.py",), tests=("tests",), licence="MIT"
        )
        checkout = check_out(project, tmp_path / "cache", store)
        return Suite(checkout, (mount(downloads, backend, store),), backend, store, "python-3.11")

    return suite


THREADS = """
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

asked, told = queue.Queue(), queue.Queue()
lock = threading.Lock()


def serve():
    while True:
        value = asked.get()
        with lock:
            told.put(2 * value)


threading.Thread(target=serve, daemon=True).start()
pool = ThreadPoolExecutor(2)


def doubled(value):
    asked.put(value)
    return told.get(timeout=20)
"""
USES_THREADS = """
import os
from box import doubled, pool


def test_the_thread_answers():
    assert doubled(3) == 6


def test_the_pool_works():
    assert list(pool.map(abs, [-1, -2])) == [1, 2]


def test_a_fork_of_its_own():
    child = os.fork()
    if child == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_threads_that_a_project_starts_on_import_live_in_every_run(made: Made) -> None:
    results = made(THREADS, USES_THREADS).run([Run(key=str(number), shuffle=number) for number in range(4)], LIMITS)
    assert [(set(result.states.values()), result.finished) for result in results] == [({"passed"}, True)] * 4
    assert [len(result.states) for result in results] == [3] * 4


DAEMON = """
import os, sys

MARK = b"left-by-a-run"


def leave():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", MARK])
        os._exit(0)
    os.wait()


def left():
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                found += [name] if name.isdigit() and MARK in file.read() else []
        except OSError:
            continue
    return found
"""
LEAVES = """
import time
from box import leave, left


def test_nothing_of_another_run_is_alive():
    assert left() == []
    leave()
    while not left():
        time.sleep(0.01)
"""


def test_a_daemon_of_one_run_is_dead_before_the_next(made: Made) -> None:
    results = made(DAEMON, LEAVES).run([Run(key=str(number)) for number in range(3)], LIMITS)
    assert [set(result.states.values()) for result in results] == [{"passed"}] * 3


SPENDS = """
import time


def wait():
    time.sleep(0.8)


def burn():
    while True:
        pass
"""


def test_waiting_is_not_a_hang_and_a_loop_ends_at_its_own_limit(made: Made) -> None:
    waits = "from box import wait\n\ndef test_wait():\n    wait()\n"
    burns = "from box import burn\n\ndef test_quick():\n    pass\n\ndef test_burn():\n    burn()\n"
    [waited] = made(SPENDS, waits).run([Run(key="waits")], LIMITS)
    assert (waited.states, waited.breakage) == ({"tests/test_box.py::test_wait": "passed"}, "")
    [burnt] = made(SPENDS, burns).run([Run(key="burns")], LIMITS)
    assert (burnt.breakage, burnt.running) == ("hang", "tests/test_box.py::test_burn")
    assert burnt.states == {"tests/test_box.py::test_quick": "passed"}
    assert burnt.wall_ms >= 500


@pytest.mark.parametrize("tests", ["x = 1\n", "import no_such_module\n", "def test_a(:\n"])
def test_a_suite_of_which_nothing_runs_is_refused(made: Made, tests: str) -> None:
    with pytest.raises(GeneratorError, match=r"0 tests reported|no test was collected"):
        triage(made("x = 1\n", tests), "box==1", TriageConfig(min_tests=0))
