"""When each layer was used last and how much room it takes: an empty file for each, with that time and that length."""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
"""Every file and folder is counted with at least so much, bytes."""
TOUCH_S = 60.0
"""A use is written down at most once in so many seconds."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, order=True)
class Use:
    """One layer, the ones used longest ago first."""

    at: float
    """Time of the last use, seconds."""
    room: int
    """Room that it takes, bytes; 0 for a layer that is gone."""
    name: str


class Uses:
    """The uses of the layers in `folder`, shared by all processes. A lost or stale file costs a measurement, no more."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, folder / "uses"
        self._files.mkdir(exist_ok=True)
        self._touched: dict[str, float] = {}

    def record(self, name: str) -> int:
        """Measure the layer `name`, write that down with the time, and return its room."""
        size = room(self._folder / name)
        file = os.open(self._files / name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(file, size)
            os.utime(file)
        finally:
            os.close(file)
        self._touched[name] = time.monotonic()
        return size

    def touch(self, name: str) -> None:
        """The layer `name` is used now."""
        now = time.monotonic()
        if now - self._touched.get(name, -TOUCH_S) >= TOUCH_S:
            self._touched[name] = now
            try:
                os.utime(self._files / name)
            except FileNotFoundError:
                self.record(name)

    def forget(self, name: str) -> None:
        """The layer `name` is gone."""
        self._touched.pop(name, None)
        with contextlib.suppress(FileNotFoundError):
            (self._files / name).unlink()

    def listed(self) -> list[Use]:
        """Every layer, the one used longest ago first; gone ones that something is still written of among them."""
        there = {entry.name for entry in os.scandir(self._folder) if _DIGEST.fullmatch(entry.name)}
        found = []
        for entry in os.scandir(self._files):
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat()
                found.append(Use(status.st_mtime, status.st_size if entry.name in there else 0, entry.name))
        told = {use.name for use in found}
        return sorted([*found, *(Use(time.time(), self.record(name), name) for name in there - told)])


def room(folder: Path) -> int:
    """Room that `folder` and all in it take of the disk, bytes; what vanishes meanwhile is left out."""
    total = PAGE
    for parent, names, files in os.walk(folder):
        for name in (*names, *files):
            with contextlib.suppress(FileNotFoundError):
                total += max(PAGE, Path(parent, name).lstat().st_blocks * 512)
    return total
