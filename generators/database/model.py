"""The pure model of a database, and its bytes.

A state maps names to tables and views. A view is held as what it shows, so one state says all that a
verifier has to compare. Tables alone can be built.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
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


def described(table: Table) -> list[tuple[Value, ...]]:
    """What SQLite says of the columns: name, type, not null, default, place in the primary key, hidden."""
    return [(column, kind, 0, None, 0, 0) for column, kind in table.columns]


def built(state: State) -> sqlite3.Connection:
    """A database in memory with the tables of `state`; whoever asks for it closes it."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"pragma page_size = {PAGE_BYTES}")
    connection.execute("begin")
    for name, table in sorted(state.items()):
        if isinstance(table, View):
            raise ValueError(f"a view can not be built: {name}")
        connection.execute(definition(name, table))
        marks = ", ".join("?" * len(table.columns))
        connection.executemany(f"insert into {name} values ({marks})", table.rows)
    connection.execute("commit")
    return connection


def file_bytes(connection: sqlite3.Connection) -> bytes:
    """The file of a database in memory: the same bytes for the same state, whichever library built it."""
    data = connection.serialize()
    return data[:96] + LIBRARY_VERSION.to_bytes(4, "big") + data[100:]


def reaches(connection: sqlite3.Connection, statement: str, expected: State) -> bool:
    """Whether `statement` leads to a state that shows the same as `expected`. The database is left as it was."""
    connection.execute("begin")
    try:
        connection.execute(statement)
        found = dict(connection.execute("select name, type from sqlite_schema"))
        if found != {name: type(thing).__name__.lower() for name, thing in expected.items()}:
            return False
        return all(_shows(connection, name, thing) for name, thing in expected.items())
    except sqlite3.Error:
        return False
    finally:
        connection.execute("rollback")


def _shows(connection: sqlite3.Connection, name: str, thing: Table | View) -> bool:
    cursor = connection.execute(f"select * from {name}")
    rows = [_typed(row) for row in cursor]
    expected = [_typed(row) for row in thing.rows]
    if isinstance(thing, Table):
        (text,) = connection.execute("select sql from sqlite_schema where name = ?", (name,)).fetchone()
        found = connection.execute(f"pragma table_xinfo({name})")
        told = [(column.lower(), kind.lower(), *rest) for _, column, kind, *rest in found]
        if re.sub(r'"', "", text.lower()) != definition(name, thing) or told != described(thing):
            return False
    elif thing.ordered and rows != expected:
        return False
    return len(cursor.description) == len(thing.columns) and Counter(rows) == Counter(expected)


def _typed(row: tuple[object, ...]) -> tuple[tuple[str, object], ...]:
    return tuple((type(value).__name__, value) for value in row)
