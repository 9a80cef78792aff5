"""The texts of an SQLite database, read in memory and without trusting it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

HEADER = b"SQLite format 3\0"
STEPS = 50_000_000
"""Most steps of SQLite's machine that one database may take to be read."""


class DatabaseUnread(ValueError):
    """The database cannot be read; the message says why."""


def text_values(data: bytes) -> tuple[list[str], list[str], int]:
    """Of the database in `data`: each column's texts joined by line ends, every single text, and the number of binary values.

    The statements of its schema are a column too. A text spread over rows is whole only in its column.
    Raises DatabaseUnread.
    """
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            # Bytes 18 and 19 ask for a write-ahead log, which a database in memory cannot have.
            connection.deserialize(data[:18] + b"\1\1" + data[20:])
            connection.text_factory = bytes
            steps = iter(range(STEPS // 100_000))
            connection.set_progress_handler(lambda: next(steps, None) is None, 100_000)
            connection.execute("PRAGMA trusted_schema = OFF")
            columns = list(_columns(connection))
    except sqlite3.Error as error:
        raise DatabaseUnread("takes too long to read" if "interrupt" in str(error) else "damaged") from None
    texts = [[text for text in column if text is not None] for column in columns]
    joined = ["\n".join(column) for column in texts if column]
    return joined, [text for column in texts for text in column], sum(text is None for column in columns for text in column)


def _columns(connection: sqlite3.Connection) -> Iterator[list[str | None]]:
    """Texts of each column; None for a binary value. Numbers are left out."""
    schema = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    yield [sql.decode("utf-8", "replace") for _, sql in schema]
    for name, sql in schema:
        if not sql.upper().startswith(b"CREATE TABLE"):
            continue
        table = _quoted(name.decode("utf-8", "replace"))
        for column, *_ in connection.execute(f"SELECT * FROM {table} LIMIT 0").description:
            cell = _quoted(column)
            rows = connection.execute(f"SELECT {cell}, typeof({cell}) FROM {table} WHERE typeof({cell}) IN ('text', 'blob')")
            yield [value.decode("utf-8", "replace") if kind == b"text" else _text(value) for value, kind in rows]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
