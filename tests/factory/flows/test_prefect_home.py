"""Only what a killed flow left on this very home is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.flows.prefect_home import end_orphans, settle

SLEEPER = "import sys, time; sys.stdout.write('up\\n'); sys.stdout.flush(); time.sleep(120)"
PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
child.stdout.readline()
print(child.pid, flush=True)
"""
"""Starts a process, waits until it runs, and ends before it: what SIGKILL makes of a flow's server."""


def server(home: Path, word: str = "prefect.server") -> list[str]:
    """A sleeping process whose command line and environment are those of a temporary server on `home`."""
    return ["env", f"PREFECT_HOME={home}", sys.executable, "-c", SLEEPER, word]


def orphan(home: Path, word: str = "prefect.server") -> int:
    done = subprocess.run([sys.executable, "-c", PARENT, *server(home, word)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def begun() -> Iterator[list[int]]:
    """Processes to end after the test."""
    numbers: list[int] = []
    yield numbers
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def test_orphaned_servers_of_this_home_are_ended_and_no_others(tmp_path: Path, begun: list[int]) -> None:
    home, other = tmp_path / "home", tmp_path / "home-2"
    ours = [orphan(home), orphan(home)]
    elsewhere, another_program = orphan(other), orphan(home, "something.else")
    begun += [*ours, elsewhere, another_program]
    with subprocess.Popen(server(home), stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        begun.append(running.pid)
        assert end_orphans(home) == 2
        deadline = time.monotonic() + 10
        while any(alive(number) for number in ours) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not any(alive(number) for number in ours)
        assert alive(elsewhere) and alive(another_program), "of another home, of another program"
        assert running.poll() is None, "its flow is at work"
        assert end_orphans(home) == 0
        running.kill()


def test_settling_makes_the_home_and_keeps_a_servers_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_API_URL", "")
    monkeypatch.setenv("PREFECT_HOME", "/nowhere")
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    home = tmp_path / "data" / "prefect"
    settle(home)
    assert home.is_dir()
    assert os.environ["PREFECT_HOME"] == str(home) and os.environ["DO_NOT_TRACK"] == "1"
    assert "PREFECT_API_URL" not in os.environ, "an empty address would lose every record of a task run"
    monkeypatch.setenv("PREFECT_API_URL", "http://server:4200/api")
    settle(home)
    assert os.environ["PREFECT_API_URL"] == "http://server:4200/api"
    assert os.environ["PREFECT_SERVER_MEMO_STORE_PATH"] == str(home / "memo_store.toml"), "nothing in the user's own home"
    for name in (
        "PREFECT_SERVER_MEMO_STORE_PATH",
        "PREFECT_SERVER_ANALYTICS_ENABLED",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS",
        "PREFECT_LOGGING_LEVEL",
    ):
        assert os.environ.pop(name)
