"""The schedule: `factory serve` starts the night by itself when its minute comes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

CONFIG = """\
[generate]
terminal = 2
database = 0
repository = 0

[nightly]
cron = "* * * * *"
seconds = 1e-6
"""
PATIENCE_S = 240
"""The server starts in up to half a minute, and the next whole minute is up to one away."""


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "factory.toml").write_text(CONFIG)
    command = [sys.executable, "-m", "factory.cli.main", "serve", "--config", "factory.toml", "--data", "data"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "FACTORY_"))}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log, start_new_session=True)
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def runs(database: Path) -> list[tuple[str, str, str]]:
    if not database.is_file():
        return []
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT flow, state, reason FROM runs").fetchall()
    except sqlite3.OperationalError:  # the tables are not there yet
        return []
    finally:
        connection.close()


def test_a_served_night_runs_when_its_minute_comes(serving: subprocess.Popen[bytes], tmp_path: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and not any(state == "stopped" for _, state, _ in runs(tmp_path / "data/registry.db")):
        assert serving.poll() is None, (tmp_path / "log").read_text()[-2000:]
        time.sleep(1)
    found = runs(tmp_path / "data/registry.db")
    assert [(flow, state) for flow, state, _ in found] == [("nightly", "stopped")], (tmp_path / "log").read_text()[-2000:]
    assert found[0][2].startswith("time: ")
    os.killpg(serving.pid, signal.SIGINT)
    serving.wait(timeout=60)
