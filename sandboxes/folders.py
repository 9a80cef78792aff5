"""One tree as a folder: written, and brought to the owner, modes and times that equal trees have."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import NotFound, SandboxError
from factory.core.files import EntryKind, FileTree

LAYER_TIME = 1_767_225_600
"""Modification time of every file and folder of a layer (2026-01-01T00:00:00Z), seconds."""


def load_tree(blobs: BlobStore, digest: Digest) -> FileTree:
    """The tree `digest`. Raises SandboxError when the store lacks it."""
    try:
        return FileTree.load(blobs, digest)
    except NotFound as error:
        raise SandboxError(f"the tree {digest} is not in the blob store") from error


def write_tree(blobs: BlobStore, tree: FileTree, folder: Path, owner: int | None) -> None:
    """Write `tree` into the empty folder `folder`, which nobody else may be writing to.

    No link is followed: a path below anything but a folder of the tree's own raises SandboxError.
    Special entries become sockets that nothing listens on: seen as special, and harmless to open.
    """
    folders = {""}
    for path, entry in tree.items():
        _make_parents(folder, path, folders, tree)
        target = folder / path
        if entry.kind is EntryKind.DIRECTORY:
            if path not in folders:
                target.mkdir()
                folders.add(path)
        elif entry.kind is EntryKind.LINK:
            target.symlink_to(entry.target or "")
        elif entry.kind is EntryKind.SPECIAL:
            os.mknod(target, stat.S_IFSOCK)
            target.chmod(0o644)
        else:
            _write_file(target, tree.read(blobs, path), 0o755 if entry.executable else 0o644)
    settle(folder, owner)


def _make_parents(folder: Path, path: str, folders: set[str], tree: FileTree) -> None:
    parent = path.rpartition("/")[0]
    if parent in folders:
        return
    _make_parents(folder, parent, folders, tree)
    if parent in tree and tree[parent].kind is not EntryKind.DIRECTORY:
        raise SandboxError(f"the tree has {path!r} below {parent!r}, which is no folder")
    (folder / parent).mkdir()
    folders.add(parent)


def _write_file(target: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with open(descriptor, "wb") as stream:
        os.fchmod(descriptor, mode)
        stream.write(data)


def settle(folder: Path, owner: int | None) -> None:
    """Same owner, modes and times for equal trees: depth first, so that folders keep their time."""
    for parent, names, files in os.walk(folder, topdown=False):
        for name in [*files, *names]:
            _settle_one(Path(parent, name), owner)
    folder.chmod(0o755)
    _settle_one(folder, owner)


def _settle_one(path: Path, owner: int | None) -> None:
    if owner is not None:
        os.chown(path, owner, owner, follow_symlinks=False)
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o755)
    os.utime(path, (LAYER_TIME, LAYER_TIME), follow_symlinks=False)


def settled(folder: Path, owner: int | None) -> bool:
    """Whether owner, modes and times are as `settle` leaves them."""
    paths = [folder, *(Path(parent, name) for parent, names, files in os.walk(folder) for name in (*names, *files))]
    return all(_settled_one(path.lstat(), os.geteuid() if owner is None else owner) for path in paths)


def _settled_one(status: os.stat_result, owner: int) -> bool:
    mode = stat.S_IMODE(status.st_mode)
    usual = stat.S_ISLNK(status.st_mode) or mode == 0o755 or (mode == 0o644 and not stat.S_ISDIR(status.st_mode))
    return usual and status.st_uid == owner and status.st_mtime == LAYER_TIME
