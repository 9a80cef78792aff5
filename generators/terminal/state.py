"""The pure model of a working directory that expected states are computed on.

A state maps relative paths to nodes. It is what a `FileTree` says, with texts in place of digests, so
that thousands of states can be folded without storing a blob.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from factory.core.blobs import BlobStore
from factory.core.files import Entry, EntryKind, FileTree


@dataclass(frozen=True, slots=True)
class Node:
    """One path's content: text of a file, target of a link, neither for a folder."""

    kind: EntryKind
    text: str = ""
    executable: bool = False
    target: str = ""


State: TypeAlias = Mapping[str, Node]
FOLDER = Node(EntryKind.DIRECTORY)


def text_file(*lines: str) -> Node:
    """A plain file of whole lines."""
    return Node(EntryKind.FILE, "".join(f"{line}\n" for line in lines))


def lines_of(node: Node) -> list[str]:
    """The lines of a file's text, without line ends."""
    return node.text.splitlines()


def changed(before: State, after: State) -> tuple[str, ...]:
    """Paths at which two states differ, sorted."""
    return tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))


def without(state: State, *paths: str) -> dict[str, Node]:
    """`state` without `paths`."""
    return {path: node for path, node in state.items() if path not in paths}


def as_tree(state: State, blobs: BlobStore) -> FileTree:
    """The state as a file tree; contents are stored."""
    entries = {}
    for path, node in state.items():
        if node.kind is EntryKind.FILE:
            data = node.text.encode()
            entries[path] = Entry(EntryKind.FILE, blobs.put(data), len(data), node.executable)
        else:
            entries[path] = Entry(node.kind, target=node.target if node.kind is EntryKind.LINK else None)
    return FileTree(entries)
