"""Rows that the audit trail covers: every act that adds some says what each row held, as a digest.

An entry's data has them under `rows`: table, then the row's key, then `row_digest`. What stands in a
table and on no entry was written past the registry, and so was what an entry names and no row has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    if "id" in table.c:
        return str(row["id"])
    return json.dumps([row[column.name] for column in table.primary_key.columns])


def row_digest(table: Table, row: Mapping[str, Any]) -> Digest:
    """SHA-256 over the covered columns, whatever the database gives back for what was written."""
    values = {name: _value(table, name, row.get(name)) for name in COVERED[table]}
    return digest_bytes(json.dumps(values, sort_keys=True).encode())


def _value(table: Table, name: str, value: Any) -> Any:
    kind = table.c[name].type
    if value is None:
        return None
    if isinstance(kind, Double):
        return float(value)
    return bool(value) if isinstance(kind, Boolean) else value


def covering(added: Mapping[Table, Sequence[Any]]) -> Rows:
    """What an entry says of the rows (mappings by column) that its act added."""
    return {table.name: {row_key(table, row): row_digest(table, row) for row in rows} for table, rows in added.items() if rows}
