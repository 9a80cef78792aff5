"""Trees as archives, and entries streamed out of a container as trees."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

from factory.core.blobs import BlobStore
from factory.core.errors import SandboxError, SandboxLost
from factory.core.files import Entry, EntryKind, FileTree, check_path
from sandboxes.folders import LAYER_TIME


class Archive:
    """A tar archive under way, of trees and single files at absolute paths; no entry lies below a link."""

    def __init__(self, owner: int) -> None:
        self._owner = owner
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115  (closed in `data`)
        self._folders = {""}
        self._others: set[str] = set()
        self.special: list[str] = []
        """Paths of special entries: archives have no sockets, so they are made apart."""

    def add_tree(self, blobs: BlobStore, tree: FileTree, below: str = "") -> None:
        """Add `tree` below a folder, given without outer slashes. Raises SandboxError for entries below links or files."""
        self.add_folder(below)
        for path, entry in tree.items():
            place = f"{below}/{path}" if below else path
            self.add_folder(place.rpartition("/")[0])
            if entry.kind is EntryKind.DIRECTORY:
                self.add_folder(place)
            elif entry.kind is EntryKind.LINK:
                self._add(place, tarfile.SYMTYPE, 0o777, link=entry.target or "")
            elif entry.kind is EntryKind.SPECIAL:
                self.special.append(place)
            else:
                self.add_file(place, tree.read(blobs, path), 0o755 if entry.executable else 0o644)

    def add_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Add one file."""
        self.add_folder(path.rpartition("/")[0])
        self._add(path, tarfile.REGTYPE, mode, data=data)

    def add_folder(self, path: str) -> None:
        """Add a folder and those above it."""
        if path in self._folders:
            return
        self.add_folder(path.rpartition("/")[0])
        self._add(path, tarfile.DIRTYPE, 0o755)
        self._folders.add(path)

    def _add(self, path: str, kind: bytes, mode: int, *, data: bytes = b"", link: str = "") -> None:
        if path in self._others:
            raise SandboxError(f"the tree has something below {path!r}, which is no folder")
        if kind != tarfile.DIRTYPE:
            self._others.add(path)
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.mtime, info.linkname, info.size = kind, mode, LAYER_TIME, link, len(data)
        info.uid = info.gid = self._owner
        self._tar.addfile(info, io.BytesIO(data))

    def data(self) -> bytes:
        """The whole archive; nothing can be added after."""
        self._tar.close()
        return self._buffer.getvalue()


class Entries:
    """Reads the stream of `inside.EXPORT` as it arrives, without trusting it: at most `limit` bytes of content."""

    HEADER_BYTES = 1 << 16

    def __init__(self, blobs: BlobStore, limit: int) -> None:
        self._blobs = blobs
        self._room = limit
        self._received = bytearray()
        self._entries: dict[str, Entry] = {}
        self.complete = False

    def add(self, data: bytes) -> bool:
        """Take received bytes; true once the stream has ended in order. Raises SandboxLost when it is not such a stream."""
        self._received += data
        try:
            return self._read()
        except (ValueError, KeyError, TypeError) as error:
            raise SandboxLost(f"the files of the container come in another form: {error}") from error

    def _read(self) -> bool:
        while not self.complete and len(self._received) >= 4:
            size = int.from_bytes(self._received[:4], "big")
            if size == 0:
                self.complete = True
            elif size > self.HEADER_BYTES:
                raise ValueError(f"a header of {size} bytes")
            elif len(self._received) < 4 + size:
                break
            else:
                header = json.loads(self._received[4 : 4 + size])
                if not 0 <= header["size"] <= self._room:
                    raise ValueError(f"content of {header['size']} bytes")
                if len(self._received) < 4 + size + header["size"]:
                    break
                content = bytes(self._received[4 + size : 4 + size + header["size"]])
                del self._received[: 4 + size + header["size"]]
                self._room -= len(content)
                self._entries[check_path(_unescaped(header["path"]))] = self._entry(header, content)
        return self.complete

    def _entry(self, header: dict[str, Any], content: bytes) -> Entry:
        kind = EntryKind(header["kind"])
        if kind is EntryKind.FILE:
            return Entry(kind, self._blobs.put(content), len(content), bool(header["executable"]))
        return Entry(kind, target=_unescaped(header["target"]) if kind is EntryKind.LINK else None)

    def tree(self) -> FileTree:
        """The tree of a stream that ended in order."""
        return FileTree(self._entries)


def _unescaped(text: str) -> str:
    return text.encode("ascii").decode("unicode_escape")
