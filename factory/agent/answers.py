"""The cache of answers: one JSON file for each request, whole or absent; the first answer stands for every process."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from factory.core.digest import Digest
from factory.records import read_record


class AnswerCache:
    """Answers by the digest of their request. Safe for threads, and for processes that share the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._asked: dict[Digest, tuple[threading.Lock, int]] = {}
        """For each request at work a lock and the number of threads that hold or want it."""

    def read(self, request: Digest) -> Any:
        """The answer; None where there is none."""
        return read_record(self._path(request))

    def keep(self, request: Digest, answer: Any) -> Any:
        """Store an answer and return the one that stands: another process may have been first."""
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".partial")
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(answer, file, sort_keys=True)
            path.hardlink_to(partial)  # unlike a rename, this refuses to replace
        except FileExistsError:
            pass
        finally:
            partial.unlink()
        return read_record(path)

    @contextmanager
    def one_at_a_time(self, request: Digest) -> Iterator[None]:
        """Threads that have the same question take turns: the first asks, the others find its answer."""
        with self._lock:
            lock, count = self._asked.get(request, (threading.Lock(), 0))
            self._asked[request] = (lock, count + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                _, count = self._asked[request]
                if count == 1:
                    del self._asked[request]
                else:
                    self._asked[request] = (lock, count - 1)

    def _path(self, request: Digest) -> Path:
        return self.folder / request[:2] / f"{request}.json"
