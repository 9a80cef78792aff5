"""Lists of tasks: one SQL statement, answered by indexes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, and_, func, or_, select

from factory.core.assessment import TaskState, TaskStatus
from factory.core.digest import Digest
from factory.core.errors import UserError
from factory.core.statistics import Interval, wilson
from factory.core.task import REPOSITORY, TaskKind, repository_key
from registry.base import Store
from registry.tables import assessments, origins, policies, split_tasks, splits, task_families, task_keys, task_states, tasks


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """A task in a list, with its latest assessment for one policy line and its part of one split."""

    digest: Digest
    kind: TaskKind
    name: str
    status: TaskStatus
    reason: str
    """Why it has this status; empty for candidates."""
    state: TaskState
    split: str | None
    part: str | None
    families: tuple[str, ...]
    line: str | None
    """Policy line of the assessment; None when there is none."""
    policy: Digest | None
    k: int | None
    """Successes of the assessment."""
    n: int | None
    """Scored rollouts of the assessment."""
    interval: Interval | None
    """Wilson 95 % interval of k of n; None without a scored rollout."""
    generator: str
    operator: str | None
    source: str | None
    run: str | None
    created_at: str

    def as_json(self) -> dict[str, Any]:
        """A JSON object for people's tools."""
        interval = self.interval and [self.interval.low, self.interval.high]
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "kind": self.kind.value,
            "status": self.status.value,
            "state": self.state.value,
            "families": list(self.families),
            "interval": interval,
        }


class QueryStore(Store):
    """Lists and counts of tasks."""

    def query(
        self,
        *,
        status: TaskStatus | None = None,
        kind: TaskKind | None = None,
        state: TaskState | None = None,
        line: str | None = None,
        split: str | None = None,
        part: str | None = None,
        family: str | None = None,
        source: str | None = None,
        limit: int | None = None,
    ) -> list[TaskRow]:
        """Tasks that fit every filter given, by name, then digest. Without `status` the withdrawn are left out.

        `line` says whose assessments count (default: the newest of any line), `split` which split (default: the
        newest), `source` a repository's name in any spelling or the exact `Origin.source`. Raises UserError for a
        negative limit.
        """
        if limit is not None and limit < 0:
            raise UserError("limit", limit, "a number of tasks, 0 or more")
        statement = _listing(line, split).where(
            tasks.c.status != TaskStatus.WITHDRAWN.value if status is None else tasks.c.status == status.value,
            *_filters(kind=kind, state=state, part=part, family=family, source=source),
        )
        statement = statement.order_by(tasks.c.name, tasks.c.digest).limit(limit)
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(statement)]

    def row(self, digest: Digest, *, line: str | None = None, split: str | None = None) -> TaskRow | None:
        """One task as in a list, whatever its status; None when it is not registered."""
        with self._database.read() as connection:
            row = connection.execute(_listing(line, split).where(tasks.c.digest == digest)).first()
        return None if row is None else _row(row)

    def lines(self) -> list[str]:
        """Policy lines with a version, sorted."""
        return self._values(select(policies.c.line))

    def parts(self, split: str | None = None) -> list[str]:
        """Parts that tasks have in one split, or in any, sorted."""
        statement = select(split_tasks.c.part)
        return self._values(statement if split is None else statement.where(split_tasks.c.split == split))

    def families(self) -> list[str]:
        """Families of tasks, sorted."""
        return self._values(select(task_families.c.family))

    def sources(self) -> list[str]:
        """What `query` finds tasks by as `source`: names of repositories and exact sources, sorted."""
        keys = self._values(select(task_keys.c.key).where(task_keys.c.key.startswith(REPOSITORY)))
        exact = self._values(select(origins.c.source).where(origins.c.source.is_not(None)))
        return sorted({*(key.removeprefix(REPOSITORY) for key in keys), *exact})

    def has_source(self, source: str) -> bool:
        """Whether any task has `source`, a repository's name in any spelling or an exact source."""
        with self._database.read() as connection:
            return connection.execute(_of_source(source).limit(1)).first() is not None

    def _values(self, statement: Select[Any]) -> list[str]:
        with self._database.read() as connection:
            return sorted(connection.execute(statement.distinct()).scalars())

    def counts(self) -> dict[TaskStatus, int]:
        """Tasks of each status."""
        with self._database.read() as connection:
            rows = connection.execute(select(tasks.c.status, func.count()).group_by(tasks.c.status))
            found = {TaskStatus(status): count for status, count in rows}
        return {status: found.get(status, 0) for status in TaskStatus}


def _listing(line: str | None, split: str | None) -> Select[Any]:
    families = (
        select(func.aggregate_strings(task_families.c.family, "\n"))
        .where(task_families.c.task == tasks.c.digest)
        .scalar_subquery()
    )
    newest_split = select(splits.c.name).order_by(splits.c.id.desc()).limit(1).scalar_subquery()
    inner = task_states.alias("inner_states")
    newest_line = select(func.max(inner.c.assessment)).where(inner.c.task == tasks.c.digest).scalar_subquery()
    of_line = task_states.c.assessment == newest_line if line is None else task_states.c.line == line
    of_split = split_tasks.c.split == (newest_split if split is None else split)
    return (
        select(
            tasks,
            families.label("families"),
            task_states.c.state,
            assessments.c.line,
            assessments.c.policy,
            assessments.c.successes,
            assessments.c.rollouts,
            split_tasks.c.split,
            split_tasks.c.part,
            origins.c.generator,
            origins.c.operator,
            origins.c.source,
        )
        .join(origins, and_(origins.c.task == tasks.c.digest, origins.c.digest == tasks.c.origin))
        .outerjoin(task_states, and_(task_states.c.task == tasks.c.digest, of_line))
        .outerjoin(assessments, assessments.c.id == task_states.c.assessment)
        .outerjoin(split_tasks, and_(split_tasks.c.task == tasks.c.digest, of_split))
    )


def _filters(
    *, kind: TaskKind | None, state: TaskState | None, part: str | None, family: str | None, source: str | None
) -> list[ColumnElement[bool]]:
    filters: list[ColumnElement[bool]] = []
    if kind is not None:
        filters.append(tasks.c.kind == kind.value)
    if state is TaskState.UNASSESSED:
        filters.append(or_(task_states.c.state.is_(None), task_states.c.state == state.value))
    elif state is not None:
        filters.append(task_states.c.state == state.value)
    if part is not None:
        filters.append(split_tasks.c.part == part)
    if family is not None:
        filters.append(tasks.c.digest.in_(select(task_families.c.task).where(task_families.c.family == family)))
    if source is not None:
        filters.append(tasks.c.digest.in_(_of_source(source)))
    return filters


def _of_source(source: str) -> CompoundSelect[Any]:
    """Digests of the tasks of a source."""
    of_repository = select(task_keys.c.task).where(task_keys.c.key.in_(_repository_keys(source)))
    return of_repository.union(select(origins.c.task).where(origins.c.source == source))


def _repository_keys(source: str) -> set[str]:
    """Keys that the name of a repository may have; the name as it stands too, which older rows hold."""
    with suppress(UserError):
        return {REPOSITORY + source, repository_key(source)}
    return {REPOSITORY + source}


def _row(row: Any) -> TaskRow:
    return TaskRow(
        digest=row.digest,
        kind=TaskKind(row.kind),
        name=row.name,
        status=TaskStatus(row.status),
        reason=row.reason,
        state=TaskState(row.state) if row.state else TaskState.UNASSESSED,
        split=row.split,
        part=row.part,
        families=tuple(sorted(row.families.split("\n"))) if row.families else (),
        line=row.line,
        policy=row.policy,
        k=row.successes,
        n=row.rollouts,
        interval=wilson(row.successes, row.rollouts) if row.rollouts else None,
        generator=row.generator,
        operator=row.operator,
        source=row.source,
        run=row.run,
        created_at=row.created_at,
    )
