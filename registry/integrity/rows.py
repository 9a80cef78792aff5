"""Rows of covered tables against the digests on the trail: altered, gone, and written past the registry."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, RowMapping, select
from sqlalchemy.schema import Table

from factory.core.digest import Digest
from registry.covered import COVERED, row_digest, row_key
from registry.database import json_of, raw_columns
from registry.integrity.trail import Trail
from registry.tables import JsonText

_JSON = {table: [name for name in names if isinstance(table.c[name].type, JsonText)] for table, names in COVERED.items()}


def check_rows(connection: Connection, trail: Trail) -> Iterator[str]:
    """One line for every row that is not what the trail says, of every covered table."""
    for table in COVERED:
        yield from check_table(connection, trail, table)


def check_table(connection: Connection, trail: Trail, table: Table) -> Iterator[str]:
    """The lines of one table."""
    expected = trail.rows[table.name]
    met: set[str] = set()
    rows = connection.execute(select(*raw_columns(table)), execution_options={"yield_per": 1000}).mappings()
    for row in rows:
        key, digest = _read(table, row)
        met.add(key)
        if key not in expected:
            yield f"{_named(table, key, row)}: not on the audit trail"
        elif digest != expected[key][0]:
            yield f"{_named(table, key, row)}: not as audit entry {expected[key][1]} recorded it"
    for key, (_, entry) in expected.items():
        if key not in met:
            yield f"{table.name} {key}: recorded by audit entry {entry}, and gone"


def _read(table: Table, row: RowMapping) -> tuple[str, Digest | None]:
    """A row's key and digest; no digest where a value is of a type that the registry never writes."""
    found = dict(row)
    for name in _JSON[table]:
        found[name] = json_of(found[name])
    try:
        return row_key(table, found), row_digest(table, found)
    except (TypeError, ValueError):
        return str([row[column.name] for column in table.primary_key.columns]), None


def _named(table: Table, key: str, row: RowMapping) -> str:
    of_task = f" of task {row['task']}" if "id" in table.c and "task" in table.c else ""
    return f"{table.name} {key}{of_task}"
