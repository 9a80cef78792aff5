"""Rows that the audit trail covers: every act that adds some says what each row held, as a digest.

An entry's data has them under `rows`: table, then the row's key, then `row_digest`. What stands in a
table and on no entry was written past the registry, and so was what an entry names and no row has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Boolean, Connection, Double, insert
from sqlalchemy.schema import Table

from factory.core.digest import Digest, Json, digest_bytes
from registry.tables import (
    assessments,
    evidence,
    lineage,
    origins,
    policies,
    split_tasks,
    task_families,
    task_keys,
    tasks,
    trajectories,
)

COVERED: dict[Table, tuple[str, ...]] = {
    tasks: ("digest", "kind", "name", "instruction", "text", "origin", "run", "created_at"),
    origins: (
        *("task", "digest", "generator", "generator_version", "operator", "source", "template", "manifest"),
        *("run", "created_at"),
    ),
    task_families: ("task", "family", "position"),
    task_keys: ("task", "key", "position"),
    evidence: ("task", "filter", "rule", "passed", "reason", "data", "run", "created_at"),
    policies: ("line", "weights", "step", "parent", "path", "format", "created_at"),
    assessments: (
        *("task", "line", "policy", "successes", "rollouts", "masked", "unparsed", "temperature", "image", "backend"),
        *("state", "run", "created_at"),
    ),
    trajectories: (
        *("blob", "row", "task", "group_key", "member", "policy", "outcome", "reason", "solved", "held_out_solved"),
        *("tokens", "sampled", "turns", "end_tree", "purpose", "run", "created_at"),
    ),
    split_tasks: ("split", "task", "part"),
    lineage: ("child", "parent", "relation", "created_at"),
}
"""Columns that a row's digest is over. They stay these: written digests are of them."""

_TYPED: dict[Table, list[tuple[str, Callable[[Any], Any]]]] = {
    table: [
        (name, float if isinstance(table.c[name].type, Double) else bool)
        for name in names
        if isinstance(table.c[name].type, Double | Boolean)
    ]
    for table, names in COVERED.items()
}
"""Columns in which databases give one value back in several types."""

_KEYS = {table: tuple(column.name for column in table.primary_key.columns) for table in COVERED}
_ENCODER = json.JSONEncoder(sort_keys=True)

Rows: TypeAlias = "dict[str, Json]"
"""Table, row's key and row's digest, as they stand in an entry's data."""


def insert_numbered(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Insert rows of a table that numbers them; returns them with their `id`, in order."""
    if not rows:
        return []
    added = insert(table).returning(table.c.id, sort_by_parameter_order=True)
    numbers = connection.execute(added, rows).scalars().all()
    return [{**row, "id": number} for row, number in zip(rows, numbers, strict=True)]


def row_key(table: Table, row: Mapping[str, Any]) -> str:
    """The primary key as text: a number as its digits, everything else as JSON."""
    names = _KEYS[table]
    return str(row["id"]) if names == ("id",) else _ENCODER.encode([row[name] for name in names])


def row_digest(table: Table, row: Mapping[str, Any]) -> Digest:
    """SHA-256 over the covered columns, whatever the database gives back for what was written."""
    values = {name: row.get(name) for name in COVERED[table]}
    for name, kind in _TYPED[table]:
        if values[name] is not None:
            values[name] = kind(values[name])
    return digest_bytes(_ENCODER.encode(values).encode())


def covering(added: Mapping[Table, Sequence[Any]]) -> Rows:
    """What an entry says of the rows (mappings by column) that its act added."""
    return {table.name: {row_key(table, row): row_digest(table, row) for row in rows} for table, rows in added.items() if rows}
