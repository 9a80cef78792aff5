"""Folders as trees: read what an episode left behind, as data, without trusting any of it.

A folder is entered and a file opened only by its name below an open descriptor, never through a
link; FIFOs, sockets and devices are named, not opened. Folders are entries only when they are
empty, so equal content gives an equal digest however it came about.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from factory.core.blobs import BlobStore
from factory.core.digest import digest_bytes
from factory.core.files import Entry, EntryKind, FileTree

MAX_DEPTH = 64
"""Folders below this depth are exported as `special`: no honest tree is that deep."""
MAX_PATH_BYTES = 2048
"""Folders whose path below the exported one is longer are exported as `special`, so that every path of a tree can be laid
out below another folder: the kernel takes 4095 bytes in all."""

_GONE = (errno.ENOENT, errno.ESTALE)
"""What was listed and is not there any more."""
_CHANGED = (errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO, errno.EAGAIN, errno.EACCES)
"""What is of another kind by now, or does not let itself be opened now."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def scan(
    blobs: BlobStore | None,
    root: int,
    *,
    base: FileTree | None = None,
    changed: int | None = None,
    limit_bytes: int | None = None,
) -> FileTree:
    """The tree below the open folder `root`; contents go to `blobs` (None: only digests are taken).

    With `base` and `changed` (an overlay's lower tree and its open upper folder; both or neither) only what stands in the
    upper folder is read; the rest is taken from `base`. Files beyond `limit_bytes` in total (sparse
    ones can claim any size) are entered as `special`. In a folder that is written to meanwhile, what goes is left out and what
    becomes of another kind is `special`. Raises OSError when a folder cannot be read.
    """
    walk = _Walk(blobs, limit_bytes)
    if base is not None:
        walk.below, walk.base = _children(base), base
    with _passable(root):
        walk.folder(root, changed, "", 0)
    return FileTree(walk.entries)


def canonical(tree: FileTree) -> FileTree:
    """`tree` as a scan of it would be: without entries for folders that hold something."""
    below = _children(tree)
    return FileTree({path: entry for path, entry in tree.items() if path not in below})


def _children(tree: FileTree) -> dict[str, list[str]]:
    """Paths of `tree` by every folder above them."""
    below: dict[str, list[str]] = {}
    for path in tree:
        parent = path
        while parent:
            parent = parent.rpartition("/")[0]
            below.setdefault(parent, []).append(path)
    return below


@dataclass
class _Walk:
    blobs: BlobStore | None
    limit: int | None
    base: FileTree = field(default_factory=FileTree)
    below: dict[str, list[str]] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    taken: int = 0

    def folder(self, merged: int, changed: int | None, prefix: str, depth: int) -> None:
        with os.scandir(merged) as listing:
            names = sorted((item.name, item.is_dir(follow_symlinks=False)) for item in listing)
        if changed is not None:
            with os.scandir(changed) as listing:
                touched = {item.name for item in listing}
        for name, is_folder in names:
            path = prefix + name
            if changed is not None and name not in touched:
                self._unchanged(path)
            else:
                self._touched(merged, changed, name, path, depth, is_folder=is_folder)
        if not names and prefix:
            self.entries[prefix[:-1]] = Entry(EntryKind.DIRECTORY)

    def _unchanged(self, path: str) -> None:
        """Copy `path` and what is below it from the base; a folder that only holds others is implied."""
        below = self.below.get(path, [])
        if path in self.base and not below:
            self.entries[path] = self.base[path]
        for other in below:
            if self.base[other].kind is not EntryKind.DIRECTORY or other not in self.below:
                self.entries[other] = self.base[other]

    def _touched(self, merged: int, changed: int | None, name: str, path: str, depth: int, *, is_folder: bool) -> None:
        try:
            if is_folder:
                self._subfolder(merged, changed, name, path, depth)
            else:
                self.entries[path] = self._leaf(merged, name)
        except OSError as error:
            if error.errno in _CHANGED:
                self.entries[path] = Entry(EntryKind.SPECIAL)
            elif error.errno not in _GONE:
                raise

    def _subfolder(self, merged: int, changed: int | None, name: str, path: str, depth: int) -> None:
        if depth >= MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH_BYTES:
            self.entries[path] = Entry(EntryKind.SPECIAL)
            return
        with entered(merged, name) as inner:
            if changed is None:
                self.folder(inner, None, path + "/", depth + 1)
                return
            inner_changed = os.open(name, _FOLDER, dir_fd=changed)
            try:
                self.folder(inner, inner_changed, path + "/", depth + 1)
            finally:
                os.close(inner_changed)

    def _leaf(self, merged: int, name: str) -> Entry:
        status = os.stat(name, dir_fd=merged, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return Entry(EntryKind.LINK, target=os.readlink(name, dir_fd=merged))
        if not stat.S_ISREG(status.st_mode):
            return Entry(EntryKind.SPECIAL)
        descriptor = _open(merged, name)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or (self.limit is not None and self.taken + status.st_size > self.limit):
                return Entry(EntryKind.SPECIAL)
            data = _read(descriptor, status.st_size)
        finally:
            os.close(descriptor)
        self.taken += len(data)
        digest = digest_bytes(data) if self.blobs is None else self.blobs.put(data)
        return Entry(EntryKind.FILE, digest, len(data), bool(status.st_mode & 0o100))


def _read(descriptor: int, size: int) -> bytes:
    """At most `size` bytes: a file that grows while it is read is cut there."""
    parts = []
    while size > 0 and (part := os.read(descriptor, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@contextlib.contextmanager
def entered(parent: int, name: str) -> Iterator[int]:
    """The folder `name` below `parent`, open; made passable meanwhile where its owner had closed it."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        with _passable(handle):
            inner = os.open(f"/proc/self/fd/{handle}", _FOLDER & ~os.O_NOFOLLOW)
            try:
                yield inner
            finally:
                os.close(inner)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _passable(handle: int) -> Iterator[None]:
    """Give the owner read (and search) rights on what `handle` names, and take them back. Root needs none."""
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    if mode & 0o500 == 0o500 or os.geteuid() == 0:
        yield
        return
    os.chmod(f"/proc/self/fd/{handle}", mode | 0o500)
    try:
        yield
    finally:
        os.chmod(f"/proc/self/fd/{handle}", mode)


def _open(folder: int, name: str) -> int:
    """Open the file `name` below `folder` for reading, one that its owner closed to itself included."""
    try:
        return os.open(name, _FILE, dir_fd=folder)
    except PermissionError:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            with _passable(handle):
                return os.open(f"/proc/self/fd/{handle}", _FILE & ~os.O_NOFOLLOW)
        finally:
            os.close(handle)
