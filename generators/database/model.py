"""The pure model of a database, and its bytes.

A state maps names to tables and views. A view is held as what it shows, so one state says all that a
verifier has to compare. Tables alone can be built.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = "int | str | None"
Row: TypeAlias = tuple[Value, ...]

PAGE_BYTES = 1024
LIBRARY_VERSION = 3_040_000
"""What the header says of the library that wrote the file; it has no meaning to readers, but is part of the digest."""


@dataclass(frozen=True)
class Table:
    """A table without constraints: columns with their declared types, and rows."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class View:
    """What a view shows. A column's name is None where the request leaves it open."""

    columns: tuple[str | None, ...]
    rows: tuple[Row, ...]
    ordered: bool = False


State: TypeAlias = Mapping[str, "Table | View"]


def definition(name: str, table: Table) -> str:
    """The statement that creates a table."""
    return f"create table {name} ({', '.join(f'{column} {kind}' for column, kind in table.columns)})"


def database_bytes(state: State) -> bytes:
    """A database file with the tables of `state`: the same bytes for the same tables, in the order of their names."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"pragma page_size = {PAGE_BYTES}")
        connection.execute("begin")
        for name, table in sorted(state.items()):
            if isinstance(table, View):
                raise ValueError(f"a view has no bytes: {name}")
            connection.execute(definition(name, table))
            marks = ", ".join("?" * len(table.columns))
            connection.executemany(f"insert into {name} values ({marks})", table.rows)
        connection.execute("commit")
        data = connection.serialize()
    return data[:96] + LIBRARY_VERSION.to_bytes(4, "big") + data[100:]


def reaches(data: bytes, statement: str, expected: State) -> bool:
    """Whether `statement`, run on the database `data`, leads to a state that shows the same as `expected`."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(data)
        try:
            connection.execute(statement)
        except sqlite3.Error:
            return False
        found = dict(connection.execute("select name, type from sqlite_schema"))
        if found != {name: type(thing).__name__.lower() for name, thing in expected.items()}:
            return False
        return all(_shows(connection, name, thing) for name, thing in expected.items())


def _shows(connection: sqlite3.Connection, name: str, thing: Table | View) -> bool:
    try:
        cursor = connection.execute(f"select * from {name}")
        rows = [_typed(row) for row in cursor]
    except sqlite3.Error:
        return False
    expected = [_typed(row) for row in thing.rows]
    if isinstance(thing, Table):
        (text,) = connection.execute("select sql from sqlite_schema where name = ?", (name,)).fetchone()
        if re.sub(r'"', "", text.lower()) != definition(name, thing):
            return False
    elif thing.ordered and rows != expected:
        return False
    return len(cursor.description) == len(thing.columns) and Counter(rows) == Counter(expected)


def _typed(row: tuple[object, ...]) -> tuple[tuple[str, object], ...]:
    return tuple((type(value).__name__, value) for value in row)
