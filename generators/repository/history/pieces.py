"""Pieces of a change: differences of source files that can be taken back one at a time."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from factory.core.blobs import BlobStore
from factory.core.errors import GeneratorError
from factory.core.files import EntryKind, FileTree
from generators.repository.projects import Project

NEAR = 3
"""Differences with at most twice as many equal lines between them are one piece, as in a unified diff."""


@dataclass(frozen=True)
class FileChange:
    """One source file before and after; None where there is none."""

    path: str
    before: str | None
    after: str | None

    @cached_property
    def pieces(self) -> int:
        """How many differences there are; a file that is new or gone is one."""
        return len(self._groups) if self.before is not None and self.after is not None else 1

    @cached_property
    def _groups(self) -> list[list[tuple[str, int, int, int, int]]]:
        before, after = (self.before or "").split("\n"), (self.after or "").split("\n")
        return list(difflib.SequenceMatcher(a=after, b=before, autojunk=False).get_grouped_opcodes(NEAR))

    def reverted(self, numbers: Collection[int]) -> str | None:
        """The file after the change with these pieces as before it; None where it is not there then."""
        if len(set(numbers)) == self.pieces:
            return self.before
        if not numbers or self.before is None or self.after is None:
            return self.after
        before, after = self.before.split("\n"), self.after.split("\n")
        lines, at = [], 0
        for number in sorted(numbers):
            for tag, start, end, first, last in self._groups[number]:
                if tag != "equal":
                    lines += after[at:start] + before[first:last]
                    at = end
        return "\n".join(lines + after[at:])


@dataclass(frozen=True, order=True)
class Piece:
    """One difference of one file, or, with number -1, all of them."""

    path: str
    number: int = -1


def file_changes(project: Project, before: FileTree, after: FileTree, blobs: BlobStore) -> dict[str, FileChange]:
    """The source files that differ between two trees, by path. Raises GeneratorError for one that is no UTF-8 text."""
    found = {}
    for path in sorted({*before, *after}):
        if project.is_source(path) and before.get(path) != after.get(path):
            change = FileChange(path, _text(before, path, blobs), _text(after, path, blobs))
            if change.before != change.after:  # else only its mode changed
                found[path] = change
    return found


def _text(tree: FileTree, path: str, blobs: BlobStore) -> str | None:
    if path not in tree or tree[path].kind is not EntryKind.FILE:
        return None
    try:
        return tree.read(blobs, path).decode()
    except UnicodeDecodeError:
        raise GeneratorError(f"{path} is no UTF-8 text") from None


def pieces_of(files: Mapping[str, FileChange], most: int) -> list[Piece]:
    """The pieces of a change, one for each file when they are more than `most`."""
    found = [Piece(path, number) for path, change in files.items() for number in range(change.pieces)]
    return found if len(found) <= most else [Piece(path) for path in files]


def texts(files: Mapping[str, FileChange], pieces: Collection[Piece]) -> dict[str, str | None]:
    """What takes these pieces back: files of the project after the change, as they stand without them."""
    numbers: dict[str, set[int]] = {}
    for piece in pieces:
        every = range(files[piece.path].pieces) if piece.number < 0 else [piece.number]
        numbers.setdefault(piece.path, set()).update(every)
    return {path: files[path].reverted(some) for path, some in sorted(numbers.items())}


def patch(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> str:
    """The unified diff of some files, for people and for comparing texts."""
    parts = []
    for path in sorted({*before, *after}):
        old, new = ((texts_.get(path) or "").split("\n") for texts_ in (before, after))
        parts += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(parts)


def changed_count(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> int:
    """Lines that are added and removed between two states of some files."""
    total = 0
    for path in {*before, *after}:
        old, new = ((texts_.get(path) or "").split("\n") for texts_ in (before, after))
        lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]  # without the two names
        total += sum(line[0] in "+-" for line in lines)
    return total
