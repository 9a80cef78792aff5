"""Files as texts: encodings, notations, and what is not read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from filters.contamination.library import library
from filters.contamination.planted import rename
from filters.contamination.reading import FILE_BYTES, decoded, of_text, read, unescaped
from filters.contamination.references import ReferenceSet
from filters.contamination.screen import ContaminationScreen, Findings

TEXT = "Grüße: a naïve café, 12 % off"


def found(screen: ContaminationScreen, data: bytes, name: str) -> Findings:
    content = read(data, name)
    assert content.unread == ""
    return Findings.together([*map(screen.findings, content.texts), *map(screen.same, content.values)])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"])
def test_text_of_any_encoding_that_can_be_told(encoding: str) -> None:
    assert decoded(TEXT.encode(encoding)) == TEXT


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\0\0", bytes(range(256)), b"\0" * 64, b"GIF89a\x01\0\x02\0"])
def test_binaries_are_none(data: bytes) -> None:
    assert decoded(data) is None and read(data).unread == "binary"


def test_an_empty_file_is_read() -> None:
    assert read(b"").texts == ("",) and read(b"").unread == ""


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a"))
    return out.getvalue()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", "text")
    return out.getvalue()


@pytest.mark.parametrize("data", [gzip.compress(b"text"), _zip(), _tar()], ids=["gzip", "zip", "tar"])
def test_archives_are_said_to_be_unread(data: bytes) -> None:
    assert read(data, "a.txt").unread == "archive or compressed" and read(data).texts == ()


def test_large_files_are_said_to_be_unread() -> None:
    assert read(b"a" * FILE_BYTES).unread == ""
    assert read(b"a" * (FILE_BYTES + 1)).unread == "over 4 MiB"


def test_escapes_by_hand() -> None:
    assert unescaped(r"a\nb\tc\"d\u0041\\n") == 'a\nb\tc"dA\\n'


def _database(values: list[str]) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute('CREATE TABLE "odd ""name" (id INTEGER, "the body" TEXT)')
        connection.executemany('INSERT INTO "odd ""name" VALUES (?, ?)', enumerate(values))
        connection.commit()
        return connection.serialize()


def _csv(values: list[str]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(enumerate(values))
    return out.getvalue().encode()


def _sql(values: list[str]) -> bytes:
    return "\n".join("INSERT INTO t VALUES (1, '{}');".format(value.replace("'", "''")) for value in values).encode()


NOTATIONS: dict[str, Callable[[list[str]], bytes]] = {
    "notes.txt": lambda values: "\n\n".join(values).encode(),
    "notes.py": lambda values: "\n\n".join(f"V{n} = {value!r}" for n, value in enumerate(values)).encode(),
    "README.md": lambda values: "\n".join(f"## Title\n\n```python\n{value}\n```\n" for value in values).encode(),
    "notes.csv": _csv,
    "notes.json": lambda values: json.dumps({"rows": [{"text": value} for value in values]}).encode(),
    "notes.jsonl": lambda values: "\n".join(json.dumps({"text": value}) for value in values).encode(),
    "a.ipynb": lambda values: json.dumps({"cells": [{"source": v.splitlines(keepends=True)} for v in values]}).encode(),
    "dump.sql": _sql,
    "app.js": lambda values: "\n".join(f"const v{n} = {json.dumps(value)};" for n, value in enumerate(values)).encode(),
    "data.db": _database,
    "utf16.txt": lambda values: "\n\n".join(values).encode("utf-16"),
}


@pytest.mark.parametrize("name", NOTATIONS)
@pytest.mark.parametrize("number", [4, 32, 107])
def test_prompt_and_renamed_function_are_found_in_every_notation(
    screen: ContaminationScreen, evaluation: ReferenceSet, name: str, number: int
) -> None:
    parts = {item.part: item.text for item in evaluation.items if item.problem == f"HumanEval/{number}"}
    prose = list(library().prose[:4])
    for text in (parts["prompt"], rename(parts["function"], random.Random(number))):
        problems = {match.problem for match in found(screen, NOTATIONS[name]([*prose, text, *prose]), name).rejecting}
        assert problems == {f"HumanEval/{number}"}


@pytest.mark.parametrize(
    "name", ["notes.csv", "notes.json", "notes.jsonl", "a.ipynb", "dump.sql", "data.db", "notes.py", "README.md"]
)
def test_a_short_reference_is_found_where_it_stands_alone(screen: ContaminationScreen, name: str) -> None:
    values = ["nothing of it", "return number % 1.0", "nor of this"]
    assert {match.problem for match in found(screen, NOTATIONS[name](values), name).rejecting} == {"HumanEval/2"}


def test_in_a_file_of_five_thousand_lines_and_between_unrelated_code(
    screen: ContaminationScreen, evaluation: ReferenceSet
) -> None:
    functions = [text for text in library().functions if text.count("\n") > 6][:210]
    parts = {item.part: item.text for item in evaluation.items if item.problem == "HumanEval/10"}
    for text in (parts["function"], rename(parts["function"], random.Random(1))):
        source = "\n\n\n".join([*functions[:20], text, *functions[20:]])
        assert source.count("\n") > 5000
        assert {match.problem for match in found(screen, source.encode(), "long.py").rejecting} == {"HumanEval/10"}
    broken = "\n\n\n".join(["print 'python 2'", *functions[:20], text, *functions[20:]])
    assert {match.problem for match in found(screen, broken.encode(), "old.py").rejecting} == {"HumanEval/10"}
    assert found(screen, "\n\n\n".join(functions).encode(), "clean.py").rejecting == ()


def test_lines_spread_over_rows_are_found_in_their_column(screen: ContaminationScreen, evaluation: ReferenceSet) -> None:
    function = next(item.text for item in evaluation.items if (item.problem, item.part) == ("HumanEval/10", "function"))
    assert {match.problem for match in found(screen, _database(function.splitlines()), "a.db").rejecting} == {"HumanEval/10"}


def test_a_database_of_a_write_ahead_log_and_its_binary_values(tmp_path: Path) -> None:
    path = tmp_path / "wal.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a, b)")
        connection.execute("INSERT INTO t VALUES ('text', x'00ff'), (1, CAST('bytes' AS BLOB))")
        connection.commit()
    content = read(path.read_bytes())
    assert content.unread == "binary values of a database"
    assert {"text", "bytes"} <= set(content.values) and "CREATE TABLE t (a, b)" in content.values


@pytest.mark.parametrize("cut", [16, 100, 3000])
def test_a_damaged_database_is_said_to_be_unread(cut: int) -> None:
    whole = _database(["some text"] * 200)
    damaged = whole[:cut] + b"\xff" * (len(whole) - cut)
    assert read(damaged).unread == "database: damaged"


def test_a_database_that_takes_for_ever_is_said_to_be_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("filters.contamination.databases.STEPS", 200_000)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", [(str(number),) for number in range(100_000)])
        connection.commit()
        data = connection.serialize()
    assert read(data).unread == "database: takes too long to read"


@pytest.mark.parametrize("name", ["a.json", "a.csv", "a.sql", "a.md", "a.py", "a.ipynb", "a"])
@pytest.mark.parametrize("text", ["", "{", '"', "'", "[" * 100_000, "\\", "\\u12", "```", '"def ' * 50, "def f(" * 200])
def test_hostile_texts_are_read(name: str, text: str) -> None:
    assert of_text(text, name).texts[0] == text
