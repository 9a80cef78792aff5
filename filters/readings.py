"""Everything that can be read of a file: itself, what it holds in another notation, and what is packed in it.

Archives (zip, and wheels and eggs with it, tar) and compressed data (gzip, bzip2, xz, and zlib, in which git keeps its loose
objects) are unpacked in memory, within bounds; what can not be opened is said so.
"""

from __future__ import annotations

import bz2
import gzip
import html
import io
import json
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from filters.contamination import reading

DEPTH = 4
"""Archives within archives are opened so far: a compressed tar of wheels is three."""
UNPACKED_BYTES = 64 << 20
"""Most bytes that one file may unpack to."""
_CLOSED = (b"7z\xbc\xaf\x27\x1c", b"\x28\xb5\x2f\xfd", b"Rar!\x1a\x07", b"PACK\0\0\0", b"# v2 git bundle", b"# v3 git bundle")
"""First bytes of packed data that is not opened: 7z, zstandard, rar, git's packs and bundles."""
_COMPRESSED: dict[bytes, Callable[[io.BytesIO], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""First bytes of compressed data, and what opens it."""
_GIT_OBJECT = re.compile(rb"(?:blob|tree|commit|tag) \d+\0")
_DAMAGED = (
    *(OSError, EOFError, ValueError, RuntimeError, OverflowError),
    *(struct.error, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
)
"""What opening data that only looks like an archive, or is locked, raises."""


@dataclass(frozen=True)
class Reading:
    """One text or other content found in a file."""

    path: str
    """The file's path; `!` before the name of what is packed in it."""
    data: bytes
    closed: str = ""
    """Why it could not be opened; empty when it was, or needed no opening."""


def readings(path: str, data: bytes, *, notations: bool = True) -> tuple[Reading, ...]:
    """All that a file holds, itself first; `notations` False: what is packed alone, not what is written in another form."""
    return tuple(_opened(path, data, DEPTH, [UNPACKED_BYTES], notations))


def is_bytecode(data: bytes) -> bool:
    """Whether data is compiled Python: the header's line end, and a code object after it (in 3.7 and later)."""
    return data[2:4] == b"\r\n" and data[16:17] in (b"\xe3", b"c")


def _opened(path: str, data: bytes, depth: int, left: list[int], notations: bool) -> Iterator[Reading]:
    yield Reading(path, data)
    if notations:
        yield from _otherwise(path, data)
    if data.startswith(_CLOSED):
        yield Reading(path, b"", "packed in a form that is not opened")
        return
    try:
        for name, inner in _packed(data, left):
            if depth == 0:
                yield Reading(path, b"", f"packed more than {DEPTH} times")
                return
            yield from _opened(f"{path}!{name}", inner, depth - 1, left, notations)
    except _Full:
        yield Reading(path, b"", f"more than {UNPACKED_BYTES >> 20} MiB unpacked")
    except _DAMAGED as error:
        yield Reading(path, b"", f"packed, and can not be opened ({type(error).__name__})")


class _Full(Exception):
    """The bound of unpacked bytes is reached."""


def _packed(data: bytes, left: list[int]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of what is packed in data; `left` holds the bytes that may still be unpacked."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")) or _ends_as_zip(data):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    yield member.filename, _bounded(file, left)
    elif data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for entry in tar:
                content = tar.extractfile(entry) if entry.isreg() else None
                if content is not None:
                    yield entry.name, _bounded(content, left)
    elif opener := next((known for magic, known in _COMPRESSED.items() if data.startswith(magic)), None):
        with opener(io.BytesIO(data)) as stream:
            yield "", _bounded(stream, left)
    elif data[:1] == b"\x78" and len(data) > 2 and int.from_bytes(data[:2], "big") % 31 == 0:
        yield from _deflated(data, left)


def _ends_as_zip(data: bytes) -> bool:
    """Whether a zip archive stands behind other bytes, as in an installer's cache, and not only its mark by chance."""
    try:
        return zipfile.is_zipfile(io.BytesIO(data)) and bool(zipfile.ZipFile(io.BytesIO(data)).infolist())
    except _DAMAGED:
        return False


def _bounded(file: Any, left: list[int]) -> bytes:
    content: bytes = file.read(left[0] + 1)
    if len(content) > left[0]:
        raise _Full
    left[0] -= len(content)
    return content


def _deflated(data: bytes, left: list[int]) -> Iterator[tuple[str, bytes]]:
    """The content of a zlib stream, of a git object without its header; nothing where the first bytes were chance."""
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(data, left[0] + 1)
    except zlib.error:
        return
    if len(content) > left[0]:
        raise _Full
    left[0] -= len(content)
    yield "", _GIT_OBJECT.sub(b"", content, count=1) if _GIT_OBJECT.match(content) else content


def _otherwise(path: str, data: bytes) -> Iterator[Reading]:
    """The texts of other notations: strings of JSON, Python, SQL and databases, marked-up pages, both sides of a diff."""
    name = path.rpartition("!")[2] or path
    found = reading.read(data, name.rpartition("/")[2])
    for text in (*found.texts, "\n".join(found.values)):
        yield Reading(path, text.encode(errors="replace"))
    text = data.decode(errors="replace") if len(data) <= reading.FILE_BYTES else ""
    if name.endswith((".json", ".ipynb")):
        yield Reading(path, "\n".join(_joined(text)).encode(errors="replace"))
    if name.endswith((".html", ".htm", ".xhtml")):
        yield Reading(path, html.unescape(re.sub(r"<[^>]*>", "", text)).encode(errors="replace"))
    if re.search(r"^@@ .*@@|^\*{15}|^\d+(?:,\d+)?[acd]\d+", text, re.MULTILINE):
        lines = text.split("\n")
        for dropped in ("-<!", "+>!"):
            kept = [line[1:] if line[:1] in "-+<>! " else line for line in lines if line[:1] not in dropped or not line]
            yield Reading(path, "\n".join(kept).encode(errors="replace"))


def _joined(text: str) -> Iterator[str]:
    """Lists of strings, as notebooks keep the lines of a cell."""
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            yield "".join(value)
        elif isinstance(value, (list, dict)):
            waiting += value if isinstance(value, list) else value.values()
