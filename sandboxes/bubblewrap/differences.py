"""Layers that hold only what a snapshot changed of its task's start, so that siblings share both read-only.

They belong to one back end of one process: siblings of a state that is no longer wanted would otherwise fill the disk. A
layer in use is never removed; of the others the ones used last are kept. What a killed process leaves is removed with its
other folders at the next start.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.files import Entry, EntryKind, FileTree
from sandboxes.folders import settle, write_tree
from sandboxes.layers import LayerCache
from sandboxes.owners import claim_name

KEPT = 16
"""Most layers kept that no sandbox uses."""
PAGE = 4096
"""Unit in which a file takes room, bytes."""

_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One layer in use."""

    name: str
    """Path below the folder of layers."""
    size: int
    """Room that its files would take of a sandbox's disk, bytes."""
    key: tuple[Digest, Digest]
    """The trees that it leads from and to."""


class Differences:
    """Layers by the trees that they lead from and to. Safe for several threads."""

    def __init__(self, layers: LayerCache, owner: int | None) -> None:
        self._layers, self._owner = layers, owner
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._known: dict[tuple[Digest, Digest], Difference] = {}
        self._used: dict[str, int] = {}
        self._unused: OrderedDict[tuple[Digest, Digest], None] = OrderedDict()

    def take(self, blobs: BlobStore, base: Digest, tree: Digest) -> Difference:
        """The layer that makes tree `base` into `tree`, written now when it is new; to be given back.

        Raises SandboxError when a tree is not in the store.
        """
        with self._lock:
            key = (base, tree)
            if key not in self._known:
                self._known[key] = self._build(blobs, key)
            self._unused.pop(key, None)
            found = self._known[key]
            self._used[found.name] = self._used.get(found.name, 0) + 1
            return found

    def give_back(self, taken: Difference) -> None:
        """The sandbox that took a layer is gone."""
        with self._lock:
            self._used[taken.name] -= 1
            if self._used[taken.name] == 0:
                del self._used[taken.name]
                self._unused[taken.key] = None
                while len(self._unused) > KEPT:
                    oldest, _ = self._unused.popitem(last=False)
                    shutil.rmtree(self._layers.folder / self._known.pop(oldest).name, ignore_errors=True)

    def _build(self, blobs: BlobStore, key: tuple[Digest, Digest]) -> Difference:
        if self._folder is None:
            self._folder = self._layers.folder / claim_name(f"differences-{next(_numbers)}")
            self._folder.mkdir()
            self._folder.chmod(0o755)
        base, tree = (self._layers.tree(blobs, digest) for digest in key)
        changed = FileTree({path: entry for path, entry in tree.items() if base.get(path) != entry})
        folder = self._folder / str(next(_numbers))
        folder.mkdir()
        try:
            write_tree(blobs, changed, folder, self._owner)
            if gone := removed(base, tree):
                _whiteouts(folder, gone)
                settle(folder, self._owner)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return Difference(name=str(folder.relative_to(self._layers.folder)), size=sum(map(_room, changed.values())), key=key)

    def close(self) -> None:
        """Remove every layer; no sandbox uses one any more."""
        with self._lock:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None
            self._known.clear()
            self._unused.clear()


def removed(base: FileTree, tree: FileTree) -> list[str]:
    """The topmost paths of `base` that `tree` lacks and that nothing of `tree` covers."""
    occupied = {parent for path in tree for parent in (*_parents(path), path)}
    found = set()
    for path in base:
        line = [*_parents(path), path]
        lost = next((name for name in line if name not in occupied), None)
        above = lost.rpartition("/")[0] if lost else ""
        if lost and (above not in tree or tree[above].kind is EntryKind.DIRECTORY):
            found.add(lost)
    return sorted(found)


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _room(entry: Entry) -> int:
    return -(-entry.size // PAGE) * PAGE


def _whiteouts(folder: Path, paths: list[str]) -> None:
    """Mark `paths` as absent in the way of overlayfs: character devices of number 0, which need no right to make."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        os.mknod(folder / path, stat.S_IFCHR, os.makedev(0, 0))
