"""File trees as data: what a task ships, what an episode left behind.

A tree maps relative POSIX paths to entries. Its manifest is canonical JSON stored as a blob, so a
tree is named by one digest and two trees share every file that they have in common. Times, owners
and permission bits other than "executable" are not part of a tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from factory.core.blobs import BlobStore, get_json, put_json
from factory.core.digest import Digest, Json, digest_of


class EntryKind(StrEnum):
    """What stands at a path. `special` (FIFO, socket, device) occurs in exports only."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    SPECIAL = "special"


@dataclass(frozen=True, slots=True)
class Entry:
    """One path's content: a blob for a file, a target for a link, neither for a directory."""

    kind: EntryKind
    content: Digest | None = None
    size: int = 0
    executable: bool = False
    target: str | None = None

    def manifest(self) -> dict[str, Json]:
        value: dict[str, Json] = {"kind": self.kind.value}
        if self.kind is EntryKind.FILE:
            value |= {"content": self.content, "size": self.size, "executable": self.executable}
        if self.kind is EntryKind.LINK:
            value["target"] = _escape(self.target or "")
        return value


def check_path(path: str) -> str:
    """Return `path` when it is relative, POSIX and free of `.`, `..`, empty and NUL parts; else ValueError."""
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"not a plain relative path: {path!r}")
    return path


class FileTree(Mapping[str, Entry]):
    """An immutable mapping of relative paths to entries; parents of files are implied.

    Paths are kept byte for byte (no Unicode normalisation): two names that differ only in form are
    two files. The manifest is therefore a list, whose strings hold the escaped path.
    """

    def __init__(self, entries: Mapping[str, Entry] | None = None) -> None:
        self._entries = {check_path(path): entry for path, entry in sorted((entries or {}).items())}

    def __getitem__(self, path: str) -> Entry:
        return self._entries[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTree) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(self.digest)

    def manifest(self) -> Json:
        """Canonical JSON: a sorted list of [escaped path, entry]."""
        return [[_escape(path), entry.manifest()] for path, entry in self._entries.items()]

    @property
    def digest(self) -> Digest:
        """SHA-256 of the manifest."""
        return digest_of(self.manifest())

    def save(self, blobs: BlobStore) -> Digest:
        """Store the manifest and return the tree's digest (file contents are stored by who made them)."""
        return put_json(blobs, self.manifest())

    @classmethod
    def load(cls, blobs: BlobStore, digest: Digest) -> FileTree:
        """Read a tree by digest. Raises NotFound when the manifest is absent."""
        return cls.from_manifest(get_json(blobs, digest))

    @classmethod
    def from_manifest(cls, manifest: list[Any]) -> FileTree:
        """Rebuild a tree from its manifest."""
        return cls({_unescape(path): _entry(value) for path, value in manifest})

    @classmethod
    def of(cls, blobs: BlobStore, contents: Mapping[str, bytes | str], executable: frozenset[str] = frozenset()) -> FileTree:
        """A tree of plain files from their contents; text is encoded as UTF-8; blobs are stored."""
        entries = {}
        for path, content in contents.items():
            data = content.encode() if isinstance(content, str) else content
            entries[path] = Entry(EntryKind.FILE, blobs.put(data), len(data), path in executable)
        return cls(entries)

    def read(self, blobs: BlobStore, path: str) -> bytes:
        """The bytes of the file at `path`. Raises KeyError unless a regular file stands there."""
        entry = self._entries[path]
        if entry.content is None:
            raise KeyError(path)
        return blobs.get(entry.content)

    def merged(self, other: Mapping[str, Entry]) -> FileTree:
        """This tree with `other` laid over it."""
        return FileTree({**self._entries, **other})

    def without(self, *paths: str) -> FileTree:
        """This tree without `paths`."""
        gone = set(paths)
        return FileTree({path: entry for path, entry in self._entries.items() if path not in gone})


def _entry(value: Mapping[str, Any]) -> Entry:
    kind = EntryKind(value["kind"])
    target = value.get("target")
    return Entry(
        kind,
        content=value.get("content"),
        size=value.get("size", 0),
        executable=value.get("executable", False),
        target=None if target is None else _unescape(target),
    )


def _escape(path: str) -> str:
    """ASCII form of a path that canonical JSON keeps as it is (surrogates of undecodable bytes included)."""
    return path.encode("unicode_escape").decode("ascii")


def _unescape(text: str) -> str:
    return text.encode("ascii").decode("unicode_escape")
