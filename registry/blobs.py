"""Content-addressed blobs in a folder: `<root>/<first two digits>/<digest>`.

A blob is written to `<root>/tmp` and renamed into place, so a reader sees all of it or nothing, and
a process killed at any point leaves at most a temporary file, which garbage collection removes.
Two writers of one content replace equal bytes with equal bytes. Every read is hashed.
"""

# Plain strings: `put` and `has` run thousands of times per training step, and Path objects double their cost.
# ruff: noqa: PTH103, PTH104, PTH110, PTH116, PTH120, PTH123

from __future__ import annotations

import itertools
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from factory.core.digest import Digest, digest_bytes, is_digest
from factory.core.errors import NotFound, RegistryError

_TOUCH_AFTER_S = 3600.0
"""A blob put again is marked as fresh when its time is older than this; far below any grace period."""


@dataclass(frozen=True, kw_only=True)
class FileBlobsConfig:
    """How blobs are written."""

    durable: bool = False
    """Flush every blob to the disk before it is named (fsync). Off, a blob survives SIGKILL but not a
    power cut within seconds of its writing; what such a cut truncated is detected on reading and healed by the next put."""


BLOB_DEFAULTS = FileBlobsConfig()


class FileBlobs:
    """Implements `factory.core.blobs.BlobStore`. Safe for any number of threads and processes on one file system."""

    def __init__(self, root: str | Path, config: FileBlobsConfig = BLOB_DEFAULTS) -> None:
        self.root = Path(root)
        self._prefix = os.fspath(self.root)
        self._durable = config.durable
        self._config = config
        self._numbers = itertools.count()

    def __reduce__(self) -> tuple[object, ...]:
        return FileBlobs, (self.root, self._config)

    def put(self, data: bytes) -> Digest:
        """Store `data` and return its digest; known content costs one hash and one stat."""
        digest = digest_bytes(data)
        path = f"{self._prefix}/{digest[:2]}/{digest}"
        try:
            known = os.stat(path)
        except FileNotFoundError:
            self._write(path, data)
            return digest
        if known.st_size != len(data):
            self._write(path, data)
        elif known.st_mtime < time.time() - _TOUCH_AFTER_S:
            self._touch(path, data)
        return digest

    def get(self, digest: Digest) -> bytes:
        """The bytes of `digest`. Raises NotFound when absent, RegistryError when they do not match."""
        try:
            with open(self._checked(digest), "rb", buffering=0) as file:
                data = file.readall()
        except FileNotFoundError:
            raise NotFound(f"no blob {digest}") from None
        except OSError as error:
            raise RegistryError(f"blob {digest} cannot be read: {error.strerror}") from error
        if digest_bytes(data) != digest:
            raise RegistryError(f"blob {digest} is damaged: its {len(data)} bytes have another digest")
        return data

    def has(self, digest: Digest) -> bool:
        """Whether `digest` is stored (its bytes are checked when read)."""
        return os.path.exists(self._checked(digest))

    def path(self, digest: Digest) -> Path:
        """Where the bytes of `digest` stand. Raises NotFound when absent. Never write to it."""
        if not self.has(digest):
            raise NotFound(f"no blob {digest}")
        return self.root / digest[:2] / digest

    def digests(self) -> Iterator[Digest]:
        """Every stored digest, in no order."""
        for folder in _entries(self._prefix):
            if len(folder.name) == 2 and folder.is_dir():
                yield from (entry.name for entry in os.scandir(folder.path) if is_digest(entry.name))

    def age(self, digest: Digest) -> tuple[int, float]:
        """Size in bytes, and seconds since it was last put (to within an hour)."""
        known = os.stat(self._checked(digest))
        return known.st_size, time.time() - known.st_mtime

    def discard(self, digest: Digest) -> None:
        """Remove a blob; for garbage collection alone."""
        Path(self._checked(digest)).unlink(missing_ok=True)

    def discard_leftovers(self, older_than_s: float) -> int:
        """Remove temporary files that killed processes left; returns how many."""
        count = 0
        for entry in _entries(f"{self._prefix}/tmp"):
            if time.time() - entry.stat().st_mtime > older_than_s:
                Path(entry.path).unlink(missing_ok=True)
                count += 1
        return count

    def _checked(self, digest: Digest) -> str:
        if not is_digest(digest):
            raise NotFound(f"no blob {digest!r}: not a digest")
        return f"{self._prefix}/{digest[:2]}/{digest}"

    def _touch(self, path: str, data: bytes) -> None:
        """Keep a blob that is in use again from garbage collection; write it where it has just been collected."""
        try:
            os.utime(path)
        except FileNotFoundError:
            self._write(path, data)

    def _write(self, path: str, data: bytes) -> None:
        temporary = f"{self._prefix}/tmp/{os.getpid()}-{next(self._numbers)}-{os.urandom(6).hex()}"
        mode = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            descriptor = os.open(temporary, flags, mode)
        except FileNotFoundError:  # the first blob of all
            os.makedirs(os.path.dirname(temporary), exist_ok=True)
            descriptor = os.open(temporary, flags, mode)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if self._durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._name(temporary, path)

    def _name(self, temporary: str, path: str) -> None:
        try:
            os.rename(temporary, path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.rename(temporary, path)
        if self._durable:
            folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """What stands in a folder; nothing where there is none, as in a store that was never written."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except FileNotFoundError:
        return
