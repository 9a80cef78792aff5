"""What is known about tasks: evidence, status, and assessments for policy lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from factory.core.assessment import Assessment, Evidence, TaskState, TaskStatus
from factory.core.digest import Digest, Json
from factory.core.errors import Conflict, NotFound, RegistryError
from registry import audit
from registry.base import Store
from registry.covered import covering, insert_numbered
from registry.database import chunks, insert_rows, now, plain, upsert
from registry.tables import assessments, evidence, policies, status_events, task_states, tasks

TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.CANDIDATE: frozenset({TaskStatus.ACCEPTED, TaskStatus.REJECTED, TaskStatus.QUARANTINED, TaskStatus.WITHDRAWN}),
    TaskStatus.ACCEPTED: frozenset({TaskStatus.QUARANTINED, TaskStatus.WITHDRAWN}),
    TaskStatus.QUARANTINED: frozenset({TaskStatus.ACCEPTED, TaskStatus.REJECTED, TaskStatus.WITHDRAWN}),
    TaskStatus.REJECTED: frozenset({TaskStatus.CANDIDATE, TaskStatus.WITHDRAWN}),
    TaskStatus.WITHDRAWN: frozenset(),
}
"""What a status may become. An accepted task in doubt is quarantined first; a rejected one is judged anew as a candidate."""

REQUIRED_FILTER = "validity"
"""No task is accepted whose latest evidence of this filter is absent or failed."""


@dataclass(frozen=True, kw_only=True)
class StatusEvent:
    """One change of a task's status."""

    old: TaskStatus | None
    new: TaskStatus
    reason: str
    run: str | None
    created_at: str


class JudgementStore(Store):
    """Evidence, status and assessments."""

    def add_evidence(self, digest: Digest, evidence: Evidence, *, run: str | None = None) -> bool:
        """Store what a filter measured. False when it repeats the filter's latest word on the task. Raises NotFound."""
        return self.add_evidence_many([(digest, evidence)], run=run) == 1

    def add_evidence_many(self, items: Sequence[tuple[Digest, Evidence]], *, run: str | None = None) -> int:
        """Store evidence in one transaction; repetitions of a filter's latest word are skipped. Returns how many were new.

        Raises NotFound for an unknown task and ValueError for data that is not JSON (NaN and infinities included).
        """
        with self._database.write() as connection:
            _require_tasks(connection, {digest for digest, _ in items})
            latest = {(row["task"], row["filter"]): _said(row) for row in _evidence_rows(connection, [d for d, _ in items])}
            rows = []
            for digest, found in items:
                row = _evidence_row(digest, found, run)
                if latest.get((digest, found.filter)) != _said(row):
                    latest[digest, found.filter] = _said(row)
                    rows.append(row)
            if rows:
                added = insert_numbered(connection, evidence, rows)
                audit.record(connection, [("add evidence", evidence.name, {"run": run, "rows": covering({evidence: added})})])
        return len(rows)

    def evidence(self, digest: Digest) -> list[Evidence]:
        """Everything that filters measured about a task, oldest first."""
        with self._database.read() as connection:
            return [_evidence(row) for row in _evidence_rows(connection, [digest])]

    def evidence_of(
        self, *, filter: str | None = None, passed: bool | None = None, run: str | None = None
    ) -> list[tuple[Digest, Evidence]]:
        """What filters measured about all tasks, oldest first: for reports and audits."""
        wanted = {"filter": filter, "passed": passed, "run": run}
        statement = select(evidence).order_by(evidence.c.id)
        statement = statement.where(*(evidence.c[name] == value for name, value in wanted.items() if value is not None))
        with self._database.read() as connection:
            return [(row["task"], _evidence(row)) for row in connection.execute(statement).mappings()]

    def status(self, digest: Digest) -> TaskStatus:
        """A task's status. Raises NotFound."""
        with self._database.read() as connection:
            return _status(connection, digest)

    def set_status(self, digest: Digest, status: TaskStatus, reason: str, *, run: str | None = None) -> bool:
        """Move a task along `TRANSITIONS`; False when it stands there already.

        Raises NotFound, Conflict for any other move, and RegistryError for a rejection, quarantine or
        withdrawal without a reason, or an acceptance without passed validity evidence.
        """
        return self.set_status_many([(digest, status, reason)], run=run) == 1

    def set_status_many(self, changes: Sequence[tuple[Digest, TaskStatus, str]], *, run: str | None = None) -> int:
        """Several moves in one transaction: all or none. Returns how many tasks moved. Raises what `set_status` raises."""
        with self._database.write() as connection:
            _require_accepted_valid(connection, [digest for digest, status, _ in changes if status is TaskStatus.ACCEPTED])
            entries = [
                ("set status", digest, change)
                for digest, status, reason in changes
                if (change := _move(connection, digest, status, plain(reason), run))
            ]
            audit.record(connection, entries)
        return len(entries)

    def withdraw(self, digest: Digest, reason: str) -> bool:
        """Leave a tombstone: the task stays readable by digest, is in no query by default status, and never comes back."""
        return self.set_status(digest, TaskStatus.WITHDRAWN, reason)

    def status_log(self, digest: Digest) -> list[StatusEvent]:
        """Every status that a task had, oldest first."""
        statement = select(status_events).where(status_events.c.task == digest).order_by(status_events.c.id)
        with self._database.read() as connection:
            return [
                StatusEvent(
                    old=TaskStatus(row.old) if row.old else None,
                    new=TaskStatus(row.new),
                    reason=row.reason,
                    run=row.run,
                    created_at=row.created_at,
                )
                for row in connection.execute(statement)
            ]

    def add_assessments(self, items: Iterable[Assessment], *, run: str | None = None) -> int:
        """Store assessments in one transaction; the newest of a task decides its state for that line.

        One that equals the latest of its task and line in the same run is skipped. Returns how many were new.
        Raises NotFound for an unknown task or policy version.
        """
        found = list(items)
        with self._database.write() as connection:
            _require_tasks(connection, {one.task for one in found})
            _require_policies(connection, {(one.line, one.policy) for one in found})
            return _add_assessments(connection, found, run)

    def assessments(self, digest: Digest, line: str | None = None) -> list[Assessment]:
        """A task's assessments, oldest first: of one policy line, or of all."""
        statement = select(assessments).where(assessments.c.task == digest).order_by(assessments.c.id)
        if line is not None:
            statement = statement.where(assessments.c.line == line)
        with self._database.read() as connection:
            return [_assessment(row) for row in connection.execute(statement).mappings()]

    def state(self, digest: Digest, line: str) -> TaskState:
        """A task's state for a policy line, by its latest assessment."""
        statement = select(task_states.c.state).where(task_states.c.line == line, task_states.c.task == digest)
        with self._database.read() as connection:
            found = connection.execute(statement).scalar_one_or_none()
        return TaskState(found) if found else TaskState.UNASSESSED


_EVIDENCE = ("filter", "rule", "passed", "reason", "data", "run")
_ASSESSMENT = tuple(Assessment.__dataclass_fields__)


def _said(row: Any) -> tuple[Any, ...]:
    return tuple(row[name] for name in _EVIDENCE)


def _evidence(row: Any) -> Evidence:
    return Evidence(**{name: row[name] for name in Evidence.__dataclass_fields__})


def _evidence_row(digest: Digest, found: Evidence, run: str | None) -> dict[str, Any]:
    return {
        "task": digest,
        "filter": found.filter,
        "rule": plain(found.rule),
        "passed": found.passed,
        "reason": plain(found.reason),
        "data": json.loads(json.dumps(found.data, allow_nan=False)),
        "run": run,
        "created_at": now(),
    }


def _evidence_rows(connection: Connection, digests: list[Digest]) -> list[Any]:
    rows: list[Any] = []
    for some in chunks(digests):
        statement = select(evidence).where(evidence.c.task.in_(some)).order_by(evidence.c.id)
        rows.extend(connection.execute(statement).mappings())
    return rows


def _require_tasks(connection: Connection, digests: set[Digest]) -> None:
    missing = set(digests)
    for some in chunks(sorted(digests)):
        missing -= set(connection.execute(select(tasks.c.digest).where(tasks.c.digest.in_(some))).scalars())
    if missing:
        raise NotFound(f"no task {min(missing)}")


def _require_policies(connection: Connection, versions: set[tuple[str, Digest]]) -> None:
    for line, weights in sorted(versions):
        statement = select(policies.c.id).where(policies.c.line == line, policies.c.weights == weights)
        if connection.execute(statement).first() is None:
            raise NotFound(f"no policy version {weights} of line {line!r}: add it before its assessments")


def _require_accepted_valid(connection: Connection, digests: list[Digest]) -> None:
    latest = {row["task"]: row["passed"] for row in _evidence_rows(connection, digests) if row["filter"] == REQUIRED_FILTER}
    for digest in digests:
        if not latest.get(digest, False):
            known = "its latest is failed" if digest in latest else "it has none"
            raise RegistryError(f"task {digest} cannot be accepted without passed {REQUIRED_FILTER} evidence: {known}")


def _status(connection: Connection, digest: Digest) -> TaskStatus:
    found = connection.execute(select(tasks.c.status).where(tasks.c.digest == digest)).scalar_one_or_none()
    if found is None:
        raise NotFound(f"no task {digest}")
    return TaskStatus(found)


def _move(connection: Connection, digest: Digest, status: TaskStatus, reason: str, run: str | None) -> dict[str, Json]:
    """Move one task; returns what changed, nothing where it stands there already."""
    old = _status(connection, digest)
    if old is status:
        return {}
    if status not in TRANSITIONS[old]:
        raise Conflict(f"task {digest} is {old.value} and cannot become {status.value}")
    if not reason.strip() and status not in (TaskStatus.ACCEPTED, TaskStatus.CANDIDATE):
        raise RegistryError(f"task {digest} cannot become {status.value} without a reason")
    connection.execute(update(tasks).where(tasks.c.digest == digest).values(status=status.value, reason=reason))
    change: dict[str, Json] = {"old": old.value, "new": status.value, "reason": reason, "run": run}
    insert_rows(connection, status_events, [{"task": digest, **change, "created_at": now()}])
    return change


def _add_assessments(connection: Connection, found: list[Assessment], run: str | None) -> int:
    latest = _latest_assessments(connection, {one.task for one in found})
    rows = []
    for one in found:
        if latest.get((one.task, one.line)) != (one, run):
            latest[one.task, one.line] = (one, run)
            rows.append({**vars(one), "state": one.state.value, "run": run, "created_at": now()})
    if rows:
        added = insert_numbered(connection, assessments, rows)
        states = [{"line": row["line"], "task": row["task"], "assessment": row["id"], "state": row["state"]} for row in added]
        upsert(connection, task_states, states, keys=("line", "task"))
        audit.record(connection, [("add assessments", assessments.name, {"run": run, "rows": covering({assessments: added})})])
    return len(rows)


def _latest_assessments(
    connection: Connection, digests: set[Digest]
) -> dict[tuple[Digest, str], tuple[Assessment, str | None]]:
    latest = {}
    for some in chunks(sorted(digests)):
        statement = select(assessments).join(task_states, task_states.c.assessment == assessments.c.id)
        for row in connection.execute(statement.where(task_states.c.task.in_(some))).mappings():
            latest[row["task"], row["line"]] = (_assessment(row), row["run"])
    return latest


def _assessment(row: Any) -> Assessment:
    return Assessment(**{name: row[name] for name in _ASSESSMENT})
