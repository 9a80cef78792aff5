"""Trees as folders: each tree is written once per digest and shared read-only by every sandbox."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import shutil
import stat
import threading
from collections import OrderedDict
from pathlib import Path

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import NotFound, SandboxError
from factory.core.files import EntryKind, FileTree
from sandboxes.export import canonical, scan
from sandboxes.owners import claim_name, reclaim

logger = logging.getLogger(__name__)

LAYER_TIME = 1_767_225_600
"""Modification time of every file and folder of a layer (2026-01-01T00:00:00Z), seconds."""

TREES = 256
"""Most trees kept in memory."""

_numbers = itertools.count()


class LayerCache:
    """Folders named by tree digest. Safe for several threads and processes: built aside, then renamed.

    Left-over half-built folders of processes that are gone are removed when a cache is opened.
    """

    def __init__(self, folder: Path, owner: int | None = None) -> None:
        """`owner` is the user (and group) id that the sandboxes' files belong to; None keeps the caller's."""
        self.folder = folder
        self._owner = owner
        self._known: set[Digest] = set()
        self._trees: OrderedDict[Digest, FileTree] = OrderedDict()
        self._canonical: dict[Digest, bool] = {}
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        reclaim(folder)

    def path(self, blobs: BlobStore, digest: Digest) -> Path:
        """The folder of tree `digest`, written now when it is new.

        A layer that another process wrote is compared with its digest, owners, modes and times included, at its first use
        here, then trusted: a copied data folder may have lost them, and commands would be refused what the task allows.
        Raises SandboxError when the tree is unknown, or names a path below something that is no folder.
        """
        target = self.folder / digest
        if digest in self._known:
            return target
        with self._lock:
            if digest not in self._known:
                if target.is_dir() and not self._intact(blobs, target, digest):
                    logger.warning("layer %s does not match its digest and is written again", digest)
                    self._discard(target)
                if not target.is_dir():
                    self._build(blobs, digest, target)
                self._known.add(digest)
        return target

    def tree(self, blobs: BlobStore, digest: Digest) -> FileTree:
        """The tree `digest`; the ones used last are kept in memory. Raises SandboxError when it is unknown."""
        with self._lock:
            tree = self._trees.pop(digest, None) or load_tree(blobs, digest)
            self._trees[digest] = tree
            if len(self._trees) > TREES:
                self._trees.popitem(last=False)
        return tree

    def is_canonical(self, blobs: BlobStore, digest: Digest) -> bool:
        """Whether an export of the tree `digest` would have that digest too. Raises SandboxError when it is unknown."""
        known = self._canonical.get(digest)
        if known is None:
            tree = self.tree(blobs, digest)
            if len(self._canonical) >= 16 * TREES:
                self._canonical.clear()
            known = self._canonical[digest] = canonical(tree) == tree
        return known

    def _intact(self, blobs: BlobStore, target: Path, digest: Digest) -> bool:
        if not _settled(target, self._owner):
            return False
        found = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return scan(None, found) == canonical(load_tree(blobs, digest))
        finally:
            os.close(found)

    def _build(self, blobs: BlobStore, digest: Digest, target: Path) -> None:
        folder = self.folder / claim_name(f"layer-{next(_numbers)}")
        folder.mkdir()
        try:
            write_tree(blobs, load_tree(blobs, digest), folder, self._owner)
            with contextlib.suppress(OSError):  # another process was first: its folder has the same content
                folder.rename(target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if not target.is_dir():
            raise SandboxError(f"cannot write layer {digest} below {self.folder}")

    def _discard(self, target: Path) -> None:
        aside = self.folder / claim_name(f"bad-{next(_numbers)}")
        with contextlib.suppress(FileNotFoundError):
            target.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


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


def _settled(folder: Path, owner: int | None) -> bool:
    """Whether owner, modes and times are as `settle` leaves them."""
    paths = [folder, *(Path(parent, name) for parent, names, files in os.walk(folder) for name in (*names, *files))]
    return all(_settled_one(path.lstat(), os.geteuid() if owner is None else owner) for path in paths)


def _settled_one(status: os.stat_result, owner: int) -> bool:
    mode = stat.S_IMODE(status.st_mode)
    usual = stat.S_ISLNK(status.st_mode) or mode == 0o755 or (mode == 0o644 and not stat.S_ISDIR(status.st_mode))
    return usual and status.st_uid == owner and status.st_mtime == LAYER_TIME
