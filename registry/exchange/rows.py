"""Rows of others' data sets: SWE-smith's and SWE-bench's fields, in JSON lines or Parquet by the file's name.

A row is read in two steps. `read_rows` gives the values as they stand in the file, and a line for what is no row at all;
`parse` looks at the fields that its format has and leaves every other column alone. Lists of test names may be
lists or, as in published SWE-bench files, JSON texts of lists. `write_rows` writes rows so that reading gives them back
equal, or refuses: in Parquet a column that some rows lack is null in those.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from factory.core.errors import UserError
from registry.exchange.values import decoded, encoded

LINE_BYTES = 64 << 20
"""The longest row of JSON lines, bytes."""
SHOWN = 60
"""Most characters of a wrong value in a message."""
BATCH = 64
"""Rows of a Parquet file in memory at once."""
SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")

Values = Mapping[str, Any]


@dataclass(frozen=True)
class RowFormat:
    """A published form of rows."""

    name: str
    texts: tuple[str, ...]
    """Columns that must hold text, not only blanks."""
    optional: tuple[str, ...]
    """Columns that may be absent, null or empty, and hold text where they are not."""


FORMATS: Mapping[str, RowFormat] = MappingProxyType(
    {
        "swesmith": RowFormat("swesmith", ("instance_id", "repo", "patch", "problem_statement"), ("image_name", "base_commit")),
        "swebench": RowFormat(
            "swebench",
            ("instance_id", "repo", "base_commit", "patch", "problem_statement"),
            ("test_patch", "version", "hints_text"),
        ),
    }
)
"""Every format by name. In SWE-smith `patch` is the bug and its reverse the fix; in SWE-bench it is the fix."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row, its fields checked."""

    format: str
    number: int
    """Place in the file, from 1."""
    instance_id: str
    repo: str
    patch: str
    problem_statement: str
    fail_to_pass: tuple[str, ...]
    """In the order of the row, each once; at least one."""
    pass_to_pass: tuple[str, ...]
    base_commit: str = ""
    test_patch: str = ""
    image_name: str = ""
    values: Values
    """All columns as they were read, further ones among them."""


@dataclass(frozen=True)
class Reject:
    """What was no row, or a row that can not become a task."""

    number: int
    instance_id: str
    """Empty where none could be read."""
    reason: str
    """One line."""


def file_suffix(path: Path) -> str:
    """Which of `SUFFIXES` a file's name ends in. Raises UserError."""
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return suffix
    raise UserError("file", str(path), f"a name that ends in {', '.join(SUFFIXES)}")


def read_rows(path: Path) -> Iterator[tuple[int, Values | Reject]]:
    """Numbered rows of a file as they are; a reject for each line that is no JSON object. Raises UserError for another file."""
    suffix = file_suffix(path)
    try:
        yield from _parquet(path) if suffix == ".parquet" else _json_lines(path, suffix.endswith(".gz"))
    except (OSError, EOFError, pa.ArrowException) as error:
        raise UserError("file", str(path), f"a readable file of rows ({_one_line(error)})") from error


def _parquet(path: Path) -> Iterator[tuple[int, Values | Reject]]:
    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, row


def _json_lines(path: Path, compressed: bool) -> Iterator[tuple[int, Values | Reject]]:
    with gzip.open(path, "rb") if compressed else path.open("rb") as file:
        for number, line in enumerate(_lines(file), start=1):
            if line is None:
                yield number, Reject(number, "", f"longer than {LINE_BYTES} bytes")
            elif line.strip():
                yield number, _object(number, line)


def _lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """Lines of a file; None for each that is too long, which is read past without being kept."""
    while line := file.readline(LINE_BYTES):
        if len(line) < LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while (rest := file.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
            continue
        yield None


def _object(number: int, line: bytes) -> Values | Reject:
    try:
        value = json.loads(line)
        if isinstance(value, dict):
            return {name: decoded(item) for name, item in value.items()}
    except (ValueError, RecursionError) as error:
        return Reject(number, "", f"not JSON ({_one_line(error)})")
    return Reject(number, "", f"a JSON {type(value).__name__}, not an object")


def parse(form: RowFormat, number: int, values: Values) -> Row:
    """The checked fields of a row. Raises UserError that names the first one that is wrong, in one line."""
    texts = {name: _text(values, name, number) for name in form.texts}
    for name in form.texts:
        if not texts[name].strip():
            raise _wrong(number, name, texts[name], "text that is not empty")
    texts |= {name: _text(values, name, number) for name in form.optional if values.get(name) is not None}
    fail, keep = (_names(values, name, number) for name in ("FAIL_TO_PASS", "PASS_TO_PASS"))
    if not fail:
        raise _wrong(number, "FAIL_TO_PASS", [], "at least one test")
    if both := set(fail) & set(keep):
        raise _wrong(number, "PASS_TO_PASS", min(both), "tests that are not in FAIL_TO_PASS too")
    known = {name: text for name, text in texts.items() if name in Row.__dataclass_fields__}
    return Row(format=form.name, number=number, fail_to_pass=fail, pass_to_pass=keep, values=values, **known)


def _text(values: Values, name: str, number: int) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise _wrong(number, name, value, "text")
    return _sound(value, name, number)


def _sound(text: str, name: str, number: int) -> str:
    """`text` unless no file could hold it."""
    if "\0" in text:
        raise _wrong(number, name, text, "text without NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _wrong(number, name, text, "text without lone surrogates") from None
    return text


def _names(values: Values, name: str, number: int) -> tuple[str, ...]:
    """Test names, each once: a list of texts, or the JSON text of one; none where the column is absent or null."""
    found = values.get(name)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            raise _wrong(number, name, found, "a list of test names, or one as JSON text") from None
    if found is None:
        found = []
    if not isinstance(found, list | tuple) or not all(isinstance(item, str) and item for item in found):
        raise _wrong(number, name, found, "a list of test names, or one as JSON text")
    return tuple(dict.fromkeys(_sound(item, name, number) for item in found))


def _wrong(number: int, name: str, value: object, expected: str) -> UserError:
    shown = value if isinstance(value, str) else repr(value)
    return UserError(f"row {number}: {name}", shown[:SHOWN] + ("..." if len(shown) > SHOWN else ""), expected)


def write_rows(rows: Sequence[Values], path: Path) -> None:
    """Write rows to a file that appears whole or not at all.

    Raises UserError for another kind of file, and for rows that Parquet could not give back as they are.
    """
    suffix = file_suffix(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        if suffix == ".parquet":
            pq.write_table(_table(rows, path), partial)
        else:
            _write_lines(rows, partial, suffix.endswith(".gz"))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _write_lines(rows: Sequence[Values], path: Path, compressed: bool) -> None:
    # Neither a file name nor a time: the same rows give the same bytes.
    with path.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) if compressed else raw as file:
        for row in rows:
            file.write(json.dumps({name: encoded(value) for name, value in row.items()}).encode() + b"\n")


def _table(rows: Sequence[Values], path: Path) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        wanted = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(wanted)
            same = columns[name].to_pylist() == wanted
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            same = False
        if not same:
            raise UserError("file", str(path), f"JSON lines (.jsonl): Parquet can not hold the values of {name!r} as they are")
    return pa.table(columns)


def _one_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
