"""What can be told from other rows: status, states, aliases, origins, exclusions and runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from factory.core.assessment import Assessment
from factory.core.digest import Digest, digest_of
from factory.core.errors import UserError
from registry.admission import repository_name
from registry.database import json_of, raw_columns
from registry.integrity.trail import Change, Trail
from registry.migrations.versions.r0003_excluded import SWE_BENCH
from registry.tables import (
    alias_log,
    aliases,
    assessments,
    excluded_repositories,
    origins,
    runs,
    status_events,
    task_states,
    tasks,
)


def check_derived(connection: Connection, trail: Trail) -> Iterator[str]:
    """One line for every row that other rows or the trail contradict."""
    yield from _statuses(connection, trail)
    yield from _states(connection)
    yield from _aliases(connection, trail)
    yield from _origins(connection, trail)
    yield from _exclusions(connection, trail)
    yield from _runs(connection, trail)


def _statuses(connection: Connection, trail: Trail) -> Iterator[str]:
    events: dict[Digest, list[Change]] = defaultdict(list)
    for row in connection.execute(select(*raw_columns(status_events)).order_by(status_events.c.id)):
        events[row.task].append((row.old, row.new, row.reason, row.run))
    for task, status, reason in connection.execute(select(tasks.c.digest, tasks.c.status, tasks.c.reason)):
        found = events.pop(task, [])
        newest = found[-1] if found else None
        if newest is None or status != newest[1]:
            told = "it has no status event" if newest is None else f"its newest event says {newest[1]}"
            yield f"task {task}: its status is {status}, but {told}"
        elif reason != _reason(newest):
            yield f"task {task}: the reason of its status is {reason!r}, but its newest event says {_reason(newest)!r}"
        if found != trail.statuses.get(task, []):
            yield f"task {task}: its status events are not those of the audit trail"
    yield from (f"task {task}: there is none, but status events of it" for task in events)


def _reason(event: Change) -> str:
    """A registered task has no reason yet."""
    return "" if event[0] is None else event[2]


def _states(connection: Connection) -> Iterator[str]:
    newest: dict[tuple[str, Digest], Any] = {}
    for row in connection.execute(select(*raw_columns(assessments)).order_by(assessments.c.id)):
        newest[row.line, row.task] = row
        try:
            counts = Assessment(task=row.task, line=row.line, policy=row.policy, successes=row.successes, rollouts=row.rollouts)
            right = counts.state.value == row.state
        except (TypeError, ValueError):
            right = False
        if not right:
            yield f"assessments {row.id} of task {row.task}: {row.successes} of {row.rollouts} is not {row.state!r}"
    for row in connection.execute(select(*raw_columns(task_states))):
        held = newest.pop((row.line, row.task), None)
        if held is None or (row.assessment, row.state) != (held.id, held.state):
            told = "no assessment" if held is None else f"assessment {held.id}, {held.state!r}"
            yield f"task {row.task}: its state for {row.line!r} is {row.state!r}, but its newest is {told}"
    yield from (f"task {task}: it has no state for {line!r}, but an assessment" for line, task in newest)


def _aliases(connection: Connection, trail: Trail) -> Iterator[str]:
    moves: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for row in connection.execute(select(alias_log).order_by(alias_log.c.id)):
        moves[row.name].append((row.old, row.new))
    held = {row.name: row.digest for row in connection.execute(select(aliases))}
    for name in sorted({*moves, *held, *trail.moves}, key=str):
        if moves.get(name, []) != trail.moves.get(name, []):
            yield f"alias {name!r}: its log is not that of the audit trail"
        last = moves[name][-1][1] if moves.get(name) else None
        if held.get(name) != last:
            yield f"alias {name!r}: it points at {held.get(name) or 'nothing'}, but its log says {last or 'nothing'}"


def _origins(connection: Connection, trail: Trail) -> Iterator[str]:
    found = set()
    for row in connection.execute(select(*raw_columns(origins))):
        found.add((row.task, row.digest))
        try:
            right = digest_of(json_of(row.manifest)) == row.digest
        except (TypeError, ValueError):
            right = False
        if not right:
            yield f"task {row.task}: its origin {row.digest} has other content"
    yield from (
        f"task {task}: origin {origin} is not on the audit trail" for task, origin in sorted(found - trail.origins, key=str)
    )
    yield from (f"task {task}: its origin {origin} is gone" for task, origin in sorted(trail.origins - found))
    known = set(connection.execute(select(tasks.c.digest, tasks.c.origin)).tuples())
    yield from (f"task {task}: its first origin {origin} is not there" for task, origin in sorted(known - found, key=str))


def _exclusions(connection: Connection, trail: Trail) -> Iterator[str]:
    names = set(connection.execute(select(excluded_repositories.c.name)).scalars())
    due = {*SWE_BENCH, *trail.excluded}
    yield from (f"excluded repository {name!r}: it is not excluded any more" for name in sorted(due - names))
    # An upgrade adds the canonical form of a name that was excluded in another one.
    for name in sorted(names - due - {_canonical(other) for other in names if _canonical(other) != other}):
        yield f"excluded repository {name!r}: not on the audit trail"


def _canonical(name: str) -> str:
    try:
        return repository_name(name)
    except UserError:
        return name


def _runs(connection: Connection, trail: Trail) -> Iterator[str]:
    held = dict(connection.execute(select(runs.c.id, runs.c.config)).tuples().all())
    for name in sorted({*held, *trail.runs}, key=str):
        if held.get(name) != trail.runs.get(name):
            yield f"run {name}: not as the audit trail says that it was begun"
