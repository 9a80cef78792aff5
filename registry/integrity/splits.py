"""A sealed split against what was sealed: every move of `train` undone, the assignment's digest must come out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.schema import Table

from factory.core.digest import Digest, digest_of
from registry.integrity.trail import Trail
from registry.tables import TRAIN, split_keys, split_tasks, splits, task_keys


def check_split(connection: Connection, trail: Trail, name: str) -> Iterator[str]:
    """What is wrong with one split, a line each: leaks, claims, and tasks that are not those that were sealed."""
    yield from _leaks(connection, name)
    yield from _sealed(connection, trail, name)
    sealed = trail.splits.get(name)
    yield from _claims(connection, name, sealed.moves if sealed else [])


def check_names(connection: Connection, trail: Trail) -> Iterator[str]:
    """Splits that the trail has and the table has not."""
    held = set(connection.execute(select(splits.c.name)).scalars())
    yield from (f"split {name}: sealed by the audit trail, and gone" for name in sorted(set(trail.splits) - held))


def _leaks(connection: Connection, name: str) -> Iterator[str]:
    """Every task's keys anew: each must belong to the task's part."""
    statement = (
        select(split_tasks.c.task, task_keys.c.key, split_tasks.c.part, split_keys.c.part.label("owner"))
        .select_from(split_tasks)
        .join(task_keys, task_keys.c.task == split_tasks.c.task)
        .outerjoin(split_keys, (split_keys.c.split == split_tasks.c.split) & (split_keys.c.key == task_keys.c.key))
        .where(split_tasks.c.split == name)
        .where(split_keys.c.part.is_distinct_from(split_tasks.c.part))
    )
    for row in connection.execute(statement):
        yield f"task {row.task} is in {row.part} but its key {row.key} belongs to {row.owner or 'no part'}"


def _sealed(connection: Connection, trail: Trail, name: str) -> Iterator[str]:
    row = connection.execute(select(splits).where(splits.c.name == name)).one()
    sealed = trail.splits.get(name)
    if sealed is None:
        yield "the audit trail does not say that it was sealed"
        return
    if sealed.assignment != row.digest:
        yield f"its assignment is {row.digest}, but the audit trail sealed {sealed.assignment}"
    if not row.sealed:
        yield "it is not sealed any more"
    parts: dict[Digest, Any] = dict(_column(connection, split_tasks, "task", name))
    yield from _differences(trail, name, parts)
    for move, task in reversed(sealed.moves):
        if move == "leave train":
            parts[task] = TRAIN
        elif parts.pop(task, None) != TRAIN:
            yield f"task {task} joined train, and is not there"
    if digest_of(parts) != sealed.assignment:
        yield f"its tasks are not those that were sealed: they give {digest_of(parts)}, not {sealed.assignment}"


def _differences(trail: Trail, name: str, parts: dict[Digest, Any]) -> Iterator[str]:
    """Tasks that the trail has in the split, or has not: it covers rows of splits that were sealed or adopted."""
    covered = {task for split, task in map(json.loads, trail.rows[split_tasks.name]) if split == name}
    yield from (f"task {task} is not in it any more" for task in sorted(covered - set(parts)))
    yield from (f"task {task} is in {parts[task]}, which the audit trail does not say" for task in sorted(set(parts) - covered))


def _claims(connection: Connection, name: str, moves: list[tuple[str, Digest]]) -> Iterator[str]:
    """Every key that the split holds must be one of a task that is in that part, or left it."""
    due: set[tuple[str, str]] = set()
    statement = select(task_keys.c.key, split_tasks.c.part).join(split_tasks, split_tasks.c.task == task_keys.c.task)
    due.update(connection.execute(statement.where(split_tasks.c.split == name)).tuples())
    left = sorted({task for move, task in moves if move == "leave train"})
    for task in left:
        due.update(
            (key, TRAIN) for key in connection.execute(select(task_keys.c.key).where(task_keys.c.task == task)).scalars()
        )
    for key, part in _column(connection, split_keys, "key", name):
        if (key, part) not in due:
            yield f"the key {key} belongs to {part}, but no task of it has that key"


def _column(connection: Connection, table: Table, column: str, name: str) -> list[tuple[Any, Any]]:
    """(column, part) of a split's rows."""
    statement = select(table.c[column], table.c.part).where(table.c.split == name).order_by(table.c[column])
    return [(row[0], row[1]) for row in connection.execute(statement)]
