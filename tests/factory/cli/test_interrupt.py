"""Ctrl-C while a command starts: one line, exit code 130, nothing left behind. The signal goes to the process group, as a
terminal sends it, at moments in which Python, torch, Prefect and its server begin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..flows.killing import Process, descendants
from .command import environment

CONFIG = "[generate]\nterminal = 2\ndatabase = 0\nrepository = 0\n"
LINE = "factory: interrupted; the same command resumes\n"
BEGUN = ("fetch: ", "serving nightly at ")
"""What a command may have said before the signal came."""
PATIENCE_S = 60.0
SLOW = """
import sys
from pathlib import Path
sys.argv = ["factory", "tasks", "list"]
class Waits:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            Path("reached").touch()
            import time
            time.sleep(60)
sys.meta_path.insert(0, Waits())
from factory.cli.main import main
main()
"""
"""A command whose start stands still where it imports a module."""


def interrupted(command: list[str], folder: Path, seconds: float, reached: Path | None = None) -> tuple[int, str, list[str]]:
    """Interrupt a command after `seconds`, counted from when `reached` exists; its code, what it said, what it left."""
    with (folder / "said").open("wb") as said:
        running = subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=environment(), stdout=said, stderr=said, start_new_session=True
        )
    deadline = time.monotonic() + PATIENCE_S
    while reached is not None and not reached.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(seconds)
    assert running.poll() is None, (folder / "said").read_text()
    children = descendants(running.pid)
    os.killpg(running.pid, signal.SIGINT)
    try:
        code = running.wait(PATIENCE_S)
    finally:
        running.kill()
        running.wait()
    return code, (folder / "said").read_text(), left(children)


def left(children: set[Process]) -> list[str]:
    deadline = time.monotonic() + 10
    while any(one.alive for one in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [one.command for one in children if one.alive]


@pytest.mark.parametrize("name", ["typer", "factory.cli.tasks", "factory.settings", "sqlalchemy"])
def test_an_interrupt_during_an_import(name: str, tmp_path: Path) -> None:
    found = interrupted(["-c", SLOW.format(name=name)], tmp_path, 0.1, tmp_path / "reached")
    assert found == (130, LINE, [])


def test_an_interrupt_that_meets_a_callback_is_not_lost(tmp_path: Path) -> None:
    """Python only reports what is raised in a callback of a weak reference, and goes on."""
    code = (
        "import factory.cli.interrupt, signal, time, weakref\n"
        "class Gone: pass\n"
        "gone = Gone()\n"
        "def called(reference):\n    open('reached', 'w').close(); signal.raise_signal(signal.SIGINT)\n"
        "held = weakref.ref(gone, called)\n"
        "del gone\n"
        "time.sleep(60)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (130, LINE)
    assert (tmp_path / "reached").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 2.0, 5.0, 10.0])
@pytest.mark.parametrize("command", ["nightly", "serve"])
def test_an_interrupt_while_a_flow_starts(command: str, seconds: float, tmp_path: Path) -> None:
    (tmp_path / "factory.toml").write_text(CONFIG)
    code, said, remaining = interrupted(["-m", "factory.cli.main", command, "--data", "data"], tmp_path, seconds)
    assert (code, remaining) == (130, [])
    lines = said.splitlines(keepends=True)
    assert lines[-1] == LINE and all(line.startswith(BEGUN) for line in lines[:-1]), said
