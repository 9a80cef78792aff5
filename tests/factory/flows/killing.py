"""Killing a command as the out-of-memory killer does: its main process alone, at once, and seeing what stays behind."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandboxes.owners import start_time

from ..cli.command import ROOT, environment

GRACE_S = 30.0
"""Seconds that what belongs to a killed process may take to notice and end."""


@dataclass(frozen=True)
class Process:
    """A process that cannot be taken for a later one with its number."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z" and start_time(self.pid) == self.started

    @property
    def command(self) -> str:
        return Path(f"/proc/{self.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]


def descendants(pid: int) -> set[Process]:
    """Every process below `pid` now."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, waiting = set(), [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            started = start_time(child)
            if started is not None:
                found.add(Process(child, started))
                waiting.append(child)
    return found


@dataclass
class Killer:
    """Runs one command again and again, kills it, and remembers what it had started."""

    arguments: tuple[str, ...]
    log: Path
    seen: set[Process] = field(default_factory=set)
    kills: list[float] = field(default_factory=list)
    """Seconds after which each killed start was killed."""

    def run(self, seconds: float | None = None) -> bool:
        """Start it; after `seconds` kill its main process. Whether it came to its end before. Raises when it failed."""
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "factory.cli.main", *self.arguments]
            running = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT, env=environment(), start_new_session=True
            )
        try:
            code = running.wait(seconds)
        except subprocess.TimeoutExpired:
            self.seen |= descendants(running.pid)
            running.send_signal(signal.SIGKILL)
            running.wait()
            self.kills.append(seconds or 0.0)
            return False
        assert code == 0, self.log.read_text()[-3000:]
        return True

    def left(self) -> list[str]:
        """Processes of killed starts that still run after a while."""
        deadline = time.monotonic() + GRACE_S
        while (left := [one for one in self.seen if one.alive]) and time.monotonic() < deadline:
            time.sleep(0.2)
        return [one.command for one in left if one.alive]


@dataclass(frozen=True)
class Moments:
    """Random moments of a command that takes `whole` seconds, `begin` of them before its first stage."""

    begin: float
    whole: float
    draws: random.Random

    def next(self) -> float:
        """A fifth while it begins, the others after, soon enough that many starts are needed to come to the end."""
        if self.draws.random() < 0.2:
            return self.draws.uniform(0.1, self.begin)
        return self.begin + self.draws.expovariate(6 / max(self.whole - self.begin, 1.0))


def timed(arguments: tuple[str, ...], first_line: str, log: Path) -> tuple[float, float]:
    """Run a command to its end: seconds until it says `first_line` on stderr, and in all."""
    begun, at = time.monotonic(), 0.0
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "factory.cli.main", *arguments],
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
            text=True,
        ) as running,
    ):
        assert running.stderr is not None
        lines = []
        for line in running.stderr:
            lines.append(line)
            if not at and line.startswith(first_line):
                at = time.monotonic() - begun
        assert running.wait() == 0, "".join(lines)[-3000:]
    assert at, "".join(lines)
    return at, time.monotonic() - begun


def mounts(folder: Path) -> list[str]:
    """Mounts at or below `folder`, and overlays that are made of it."""
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]


def unfinished(folder: Path) -> list[str]:
    """What a killed process had half made below `folder`."""
    marks = (".claimed-", ".saving-", ".writing-", ".partial")
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if any(mark in path.name for mark in marks))


def select(data: Path, statement: str) -> list[Any]:
    """Rows of the data folder's database."""
    connection = sqlite3.connect(f"file:{data / 'registry.db'}?mode=ro", uri=True)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def report(name: str, **figures: Any) -> None:
    """Write figures where the caller wants to keep them: a line in the file that KILL_FIGURES names."""
    if path := os.environ.get("KILL_FIGURES"):
        with Path(path).open("a") as file:
            file.write(f"{name} {figures}\n")
