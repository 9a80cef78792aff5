"""Progress of long work: bars on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from factory.cli.console import on_terminal, say

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

EVERY_S = 10.0
"""Seconds between two plain lines of one stage."""


class Plain:
    """A line when a stage begins, when it ends, and every ten seconds between."""

    def __init__(self) -> None:
        self._lock, self._name, self._done = Lock(), "", 0
        self._total: int | None = 0
        self._begun = self._said = time.monotonic()

    def stage(self, name: str, total: int | None) -> None:
        with self._lock:
            self._name, self._total, self._done = name, total, 0
            self._begun = self._said = time.monotonic()
        say(f"{name}: begins" if total is None else f"{name}: {total} to do")

    def advance(self, detail: str = "") -> None:
        with self._lock:
            self._done += 1
            now = time.monotonic()
            over = self._done == self._total
            if not over and now - self._said < EVERY_S:
                return
            self._said = now
        seconds = f"{now - self._begun:.1f} s"
        done = str(self._done) if self._total is None else f"{self._done}/{self._total}"
        say(f"{self._name}: {done} after {seconds}{f' ({detail})' if detail else ''}")

    def note(self, line: str) -> None:
        say(line)


class Bars:
    """A bar a stage."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._current: TaskID | None = None

    def stage(self, name: str, total: int | None) -> None:
        self._current = self._bars.add_task(name, total=total)

    def advance(self, detail: str = "") -> None:
        assert self._current is not None  # a stage begins before it advances
        self._bars.update(self._current, advance=1)

    def note(self, line: str) -> None:
        self._bars.console.print(line, highlight=False)


@contextmanager
def shown() -> Iterator[Plain | Bars]:
    """Progress for whoever reads stderr."""
    if not on_terminal():
        yield Plain()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        yield Bars(bars)
