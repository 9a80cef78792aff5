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
from generators.names import Names


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


def as_tree(state: State, blobs: BlobStore) -> FileTree:
    """The state as a file tree; contents are stored. As in an export, folders are entries only where they are empty."""
    held = {path.rpartition("/")[0] for path in state}
    entries = {}
    for path, node in state.items():
        if node.kind is EntryKind.FILE:
            data = node.text.encode()
            entries[path] = Entry(EntryKind.FILE, blobs.put(data), len(data), node.executable)
        elif node.kind is EntryKind.LINK:
            entries[path] = Entry(EntryKind.LINK, target=node.target)
        elif path not in held:
            entries[path] = Entry(EntryKind.DIRECTORY)
    return FileTree(entries)


def some_file(names: Names, least: int = 2, most: int = 5) -> Node:
    """A file of `least` to `most` lines of one or two words; no two lines are equal."""
    lines: dict[str, None] = {}
    for _ in range(names.rng.randint(least, most)):
        lines[names.word() if names.rng.random() < 0.5 else f"{names.word()} {names.word()}"] = None
    while len(lines) < least:
        lines[names.word()] = None
    return text_file(*lines)


def bystanders(names: Names) -> dict[str, Node]:
    """Two to four files and a folder with a file: what a task must leave alone."""
    files: dict[str, Node] = {names.fresh(): some_file(names) for _ in range(names.rng.randint(2, 4))}
    folder = names.fresh()
    return {**files, folder: FOLDER, f"{folder}/{names.fresh()}": some_file(names)}
