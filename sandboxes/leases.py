"""Who uses what, told to every process of the machine: one byte of a file for each name, locked while it is used.

The locks belong to an open file description, so the kernel lets go of them when its process ends, however it ends, and two
owners within one process are told apart.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
from pathlib import Path

_FLOCK = "hhqqi0q"
"""`struct flock` of a 64-bit machine: kind, whence, first byte, number of bytes, process id (0)."""


class Leases:
    """Names in use, by locks in the file `path`. For one thread at a time. Two names on one byte only wait for each other."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def share(self, name: str) -> None:
        """Use `name` beside others, or go back to that from owning it; waits while someone else owns it."""
        self._lock(fcntl.F_OFD_SETLKW, fcntl.F_RDLCK, name)

    def own(self, name: str) -> bool:
        """Own `name` alone; False, and all as it was, when someone else uses or owns it."""
        try:
            self._lock(fcntl.F_OFD_SETLK, fcntl.F_WRLCK, name)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def free(self, name: str) -> None:
        """Neither use nor own `name` any more; nothing to do after `close`."""
        if self._file < 0:
            return
        self._lock(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, name)

    def _lock(self, way: int, kind: int, name: str) -> None:
        place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 2
        fcntl.fcntl(self._file, way, struct.pack(_FLOCK, kind, os.SEEK_SET, place, 1, 0))

    def close(self) -> None:
        """Let go of everything. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
