"""Trees as folders: each tree is written once per digest and shared read-only by every sandbox."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import random
import shutil
import threading
import time
from collections import Counter, OrderedDict
from pathlib import Path

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError
from factory.core.files import FileTree
from sandboxes.export import canonical, scan
from sandboxes.folders import load_tree, settled, write_tree
from sandboxes.leases import Leases
from sandboxes.owners import claim_name, reclaim
from sandboxes.uses import Uses

logger = logging.getLogger(__name__)

TREES = 256
"""Most trees kept in memory."""
LAYER_BYTES = 4 << 30
"""Room that all layers may take of the disk unless a setting says otherwise, bytes."""
KNOWN = 1 << 16
"""Most layers that a process trusts; then it compares all of them anew."""
MEND_S = 5.0
"""Seconds for which a spoilt layer may stay in use elsewhere before it counts as lost."""

_numbers = itertools.count()


class LayerCache:
    """Folders named by tree digest, at most `limit_bytes` of them. Safe for several threads and processes.

    A layer is built aside, then renamed. It is in use from `take` to `give_back`, which every process that shares the folder
    can see (`sandboxes.leases`); of those that none uses, the ones used longest ago are removed when the room is needed, and
    laid out again when someone asks. What a process that is gone left half built or half removed goes when a cache is opened.
    """

    def __init__(self, folder: Path, owner: int | None = None, *, limit_bytes: int = LAYER_BYTES) -> None:
        """`owner` is the user (and group) id that the sandboxes' files belong to; None keeps the caller's."""
        self.folder = folder
        self._owner, self._limit = owner, limit_bytes
        self._known: dict[Digest, tuple[int, int, int] | None] = {}
        """Layers that were built or compared here, and which folder that was."""
        self._taken: Counter[Digest] = Counter()
        self._built = 0
        """Bytes laid out here since the last look at the room that all take."""
        self._trees: OrderedDict[Digest, FileTree] = OrderedDict()
        self._canonical: dict[Digest, bool] = {}
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        if owner is not None:
            folder.chmod(0o755)  # the sandboxes' user passes, whatever the umask or a copy made of it
        reclaim(folder)
        self._leases = Leases(folder / "leases")
        self._uses = Uses(folder)
        self._trim()

    def take(self, blobs: BlobStore, digest: Digest) -> Path:
        """The folder of tree `digest`, written now when there is none; in use until it is given back as often as taken.

        A layer that another process wrote is compared with its digest, owners, modes and times included, at its first use
        here, then trusted: a copied data folder may have lost them, and commands would be refused what the task allows.
        Raises SandboxError when the tree is unknown, names a path below something that is no folder, or has a layer of other
        content that somebody else uses.
        """
        target = self.folder / digest
        with self._lock:
            self._taken[digest] += 1
            if self._taken[digest] == 1:
                self._leases.share(digest)
                try:
                    self._provide(blobs, digest, target)
                except BaseException:
                    self._give_back(digest)
                    raise
        return target

    def give_back(self, digest: Digest) -> None:
        """End one use of the layer of tree `digest`."""
        with self._lock:
            self._give_back(digest)

    def _give_back(self, digest: Digest) -> None:
        self._taken[digest] -= 1
        if not self._taken[digest]:
            del self._taken[digest]
            self._leases.free(digest)

    def _provide(self, blobs: BlobStore, digest: Digest, target: Path) -> None:
        found = _identity(target)
        if found is None or found != self._known.get(digest):
            self._clear(blobs, digest, target)
            if not target.is_dir():
                self._build(blobs, digest, target)
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[digest] = _identity(target)
        self._uses.touch(digest)
        if self._built > self._limit // 8:
            self._trim()

    def _clear(self, blobs: BlobStore, digest: Digest, target: Path) -> None:
        """Remove a layer of other content than its digest says, unless it stays in use elsewhere for `MEND_S`."""
        limit = time.monotonic() + MEND_S
        while target.is_dir() and not self._intact(blobs, target, digest):
            if self._leases.own(digest):
                logger.warning("layer %s does not match its digest and is written again", digest)
                self._remove(digest)
                self._leases.share(digest)
            elif time.monotonic() > limit:
                raise SandboxError(f"layer {digest} does not match its digest, and another process uses it")
            else:  # whoever else found it so waits in the same way
                self._leases.free(digest)
                time.sleep(random.uniform(0.01, 0.1))
                self._leases.share(digest)

    def _trim(self) -> None:
        """Remove layers that nobody uses, the ones used longest ago first, when all take more than seven eighths of the
        limit, down to three quarters; a process looks again once it has built another eighth."""
        self._built = 0
        uses = self._uses.listed()
        total = sum(use.room for use in uses)
        wanted = self._limit * 3 // 4 if total > self._limit * 7 // 8 else total
        for use in uses:
            if (total > wanted or not use.room) and use.name not in self._taken and self._leases.own(use.name):
                try:
                    self._remove(use.name)
                finally:
                    self._leases.free(use.name)
                total -= use.room

    def _remove(self, digest: Digest) -> None:
        """Remove a layer that is owned here: put aside first, so that a kill leaves it whole or to be reclaimed."""
        aside = self.folder / claim_name(f"gone-{next(_numbers)}")
        with contextlib.suppress(FileNotFoundError):
            (self.folder / digest).rename(aside)
        self._known.pop(digest, None)
        self._uses.forget(digest)
        shutil.rmtree(aside, ignore_errors=True)

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
        if not settled(target, self._owner):
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
        self._built += self._uses.record(digest)

    def close(self) -> None:
        """Let go of every layer."""
        self._leases.close()


class Lease:
    """The layers that one sandbox uses, until `close`."""

    def __init__(self, layers: LayerCache) -> None:
        self._layers = layers
        self._taken: list[Digest] = []

    def take(self, blobs: BlobStore, digest: Digest) -> str:
        """Name of the layer of tree `digest`, in use from now on. Raises SandboxError as `LayerCache.take`."""
        name = self._layers.take(blobs, digest).name
        self._taken.append(digest)
        return name

    def close(self) -> None:
        """Give everything back. Idempotent."""
        while self._taken:
            self._layers.give_back(self._taken.pop())


def _identity(folder: Path) -> tuple[int, int, int] | None:
    """What tells this folder from one that is made later in its place; None when there is none."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns
