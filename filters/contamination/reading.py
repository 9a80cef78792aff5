"""What a file holds as text, for comparison: its whole text, and the texts that stand inside it in another notation.

Inside strings of Python, JSON, CSV, SQL and databases line ends are escaped and quotes doubled, so that neither words
nor functions could be seen in the raw text. Archives, binaries and files over the stated size are not read, and said so.
"""

from __future__ import annotations

import ast
import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from factory.core.syntax import parse_python
from filters.contamination.databases import HEADER, DatabaseUnread, text_values
from filters.contamination.normalise import words

FILE_BYTES = 4 << 20
"""Files of more bytes are not read."""
READER = 1
"""Version of the rules of this module; part of the digest of a screen of files."""
WHOLE_WORDS = 12
"""Values with fewer words on one line are compared by their exact form only."""

_ARCHIVES = {
    b"PK\x03\x04": 0,
    b"\x1f\x8b": 0,
    b"BZh": 0,
    b"\xfd7zXZ\0": 0,
    b"\x28\xb5\x2f\xfd": 0,
    b"7z\xbc\xaf": 0,
    b"ustar": 257,
}
"""First bytes of archives and compressed files, and where they stand."""
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_CONTROL = frozenset(map(chr, range(32))) - frozenset("\t\n\r\f\v\x1b\b")

_HEAD = r"\s*(?:async\s+def|def|from|import|class|@)\b"
_QUOTED = re.compile(rf"""(["'])((?={_HEAD})(?:\\.|\1\1|(?!\1)[^\\])*)\1""", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n(.*?)^[ \t]*\1", re.DOTALL | re.MULTILINE)
_LITERAL = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True, kw_only=True)
class Content:
    """What was read of one file."""

    texts: tuple[str, ...] = ()
    """Texts that are compared in every form: the file's own, and longer ones inside it."""
    values: tuple[str, ...] = ()
    """Short texts inside it that stand alone, compared by their exact form."""
    unread: str = ""
    """What was not read and why; empty when all of it was."""


def read(data: bytes, name: str = "") -> Content:
    """Read a file by its bytes; the ending of its name says which notation holds texts inside."""
    if len(data) > FILE_BYTES:
        return Content(unread=f"over {FILE_BYTES >> 20} MiB")
    if any(data[start : start + len(magic)] == magic for magic, start in _ARCHIVES.items()):
        return Content(unread="archive or compressed")
    if data.startswith(HEADER):
        try:
            columns, cells, binary = text_values(data)
        except DatabaseUnread as error:
            return Content(unread=f"database: {error}")
        found = _sorted_out(cells)
        unread = "binary values of a database" if binary else ""
        return Content(texts=(*columns, *found.texts), values=found.values, unread=unread)
    text = decoded(data)
    if text is None:
        return Content(unread="binary")
    return of_text(text, name)


def of_text(text: str, name: str = "") -> Content:
    """The text, and what stands inside it."""
    found = _sorted_out(_inside(text, name))
    whole = (text, *([unescaped(text)] if "\\n" in text else []))
    return Content(texts=(*whole, *(one for one in found.texts if one not in whole)), values=found.values)


def decoded(data: bytes) -> str | None:
    """Text of any encoding that can be told: by its mark, UTF-8, UTF-16 by its zero bytes, else Latin-1; None for binaries."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _text(data, encoding)
    if b"\0" in data:
        even, odd = data[::2].count(0), data[1::2].count(0)
        wide = 0.4 * len(data) / 2 <= max(even, odd) and min(even, odd) * 10 < max(even, odd)
        return _text(data, "utf-16-be" if even > odd else "utf-16-le") if wide else None
    return _text(data, "utf-8") or _text(data, "latin-1")


def unescaped(text: str) -> str:
    r"""`text` with `\n`, `\"`, `\u0041` and their like as the characters that they stand for."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(character, text)


def _text(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if not _CONTROL.isdisjoint(text) else text


def _sorted_out(values: Iterable[str]) -> Content:
    """Values in their order, each once: long ones and those of several lines apart from short ones."""
    texts: list[str] = []
    short: list[str] = []
    for value in dict.fromkeys(values):
        several = "\n" in value.strip() or len(value) > 20 * WHOLE_WORDS or len(words(value)) >= WHOLE_WORDS
        (texts if several else short).append(value)
    return Content(texts=tuple(texts), values=tuple(short))


def _inside(text: str, name: str) -> Iterator[str]:
    return _READERS.get(name.rpartition(".")[2].lower(), _any)(text)


def _any(text: str) -> Iterator[str]:
    """Strings of Python where it is Python; elsewhere quoted code, whatever the notation."""
    try:
        module = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield from (_unquoted(match[2], match[1]) for match in _QUOTED.finditer(text))
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = node.value
            # What stands in the source as it is was compared with it, but for functions.
            if len(value) <= 20 * WHOLE_WORDS or "def " in value or value not in text:
                yield value


def _unquoted(value: str, quote: str) -> str:
    value = value.replace(quote * 2, quote)
    return unescaped(value) if "\\n" in value else value


def _markdown(text: str) -> Iterator[str]:
    yield from (match[2] for match in _FENCE.finditer(text))
    yield from _any(text)


def _sql(text: str) -> Iterator[str]:
    yield from (match[1].replace("''", "'") for match in _LITERAL.finditer(text))


def _cells(separator: str) -> Callable[[str], Iterator[str]]:
    def cells(text: str) -> Iterator[str]:
        try:
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
                yield from row
        except csv.Error:
            yield from _any(text)

    return cells


def _json(text: str) -> Iterator[str]:
    """String values of a JSON document, or of one document a line; lists of lines (as in notebooks) joined."""
    try:
        yield from _strings(json.loads(text))
    except (ValueError, RecursionError):
        for line in text.splitlines():
            try:
                yield from _strings(json.loads(line))
            except (ValueError, RecursionError):
                yield from _any(line)


def _strings(document: Any) -> Iterator[str]:
    stack = [document]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack += [*value, *value.values()]
        elif isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value):
            yield ("" if any(item.endswith("\n") for item in value) else "\n").join(value)
            stack += value
        elif isinstance(value, list):
            stack += value


_READERS: dict[str, Callable[[str], Iterator[str]]] = {
    "csv": _cells(","),
    "tsv": _cells("\t"),
    "json": _json,
    "jsonl": _json,
    "ndjson": _json,
    "ipynb": _json,
    "md": _markdown,
    "sql": _sql,
}
NOTATIONS = frozenset(_READERS)
"""Endings of names that change how a file is read."""
