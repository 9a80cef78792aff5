"""Splits: sealed assignments of tasks to parts. A leak is impossible, not unlikely.

A key belongs to one part of a split (primary key of `split_keys`), and a trigger claims every key of
a task for the part that the task joins. Tasks that share a key, or are connected through others, are
therefore on one side. Once sealed, a holdout neither grows nor shrinks and keeps its keys for ever;
`train` takes new tasks whose keys are free or its own, and may lose tasks (their keys stay with it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from factory.core.digest import Digest, Json, digest_of
from factory.core.errors import Conflict, NotFound, SplitViolation, UserError
from registry import audit
from registry.base import Store
from registry.covered import covering
from registry.database import chunks, insert_rows, now
from registry.integrity import splits as integrity
from registry.integrity.guards import check_guards
from registry.integrity.trail import read_trail
from registry.tables import TRAIN, split_keys, split_tasks, splits, task_keys


@dataclass(frozen=True, kw_only=True)
class Split:
    """A sealed split."""

    name: str
    digest: Digest
    """Digest of the assignment that was sealed."""
    parts: dict[str, int]
    """Tasks in each part at present."""
    created_at: str


_GUARDED = frozenset({splits.name, split_keys.name, split_tasks.name, task_keys.name})


class SplitStore(Store):
    """Sealing and reading splits."""

    def seal_split(self, name: str, assignment: Mapping[Digest, str]) -> Split:
        """Seal `assignment` (task to part) in one transaction. The same assignment again returns the split.

        Raises SplitViolation, naming the key, when two parts share one; NotFound for an unknown task;
        Conflict when the split exists with another assignment; UserError for an empty name, part or assignment.
        """
        if not name or not assignment or not all(assignment.values()):
            raise UserError("split", name, "a name, and at least one task, each with the name of its part")
        digest = digest_of(dict(assignment))
        with self._database.write() as connection:
            held = connection.execute(select(splits.c.digest).where(splits.c.name == name)).scalar_one_or_none()
            if held is None:
                _check_components(connection, assignment)
                _seal(connection, name, digest, assignment)
            elif held != digest:
                raise Conflict(f"split {name!r} is sealed with another assignment")
        return self.split(name)

    def split(self, name: str) -> Split:
        """A sealed split. Raises NotFound."""
        for found in self.splits():
            if found.name == name:
                return found
        raise NotFound(f"no split {name!r}")

    def splits(self) -> list[Split]:
        """Every sealed split, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(splits).order_by(splits.c.id)).all()
            return [
                Split(name=row.name, digest=row.digest, parts=_sizes(connection, row.name), created_at=row.created_at)
                for row in rows
            ]

    def part_of(self, split: str, digest: Digest) -> str | None:
        """The part of a task, None when it is in none."""
        statement = select(split_tasks.c.part).where(split_tasks.c.split == split, split_tasks.c.task == digest)
        with self._database.read() as connection:
            return connection.execute(statement).scalar_one_or_none()

    def key_parts(self, split: str, keys: Iterable[str]) -> dict[str, str]:
        """The part to which each of `keys` belongs; free ones are left out."""
        with self._database.read() as connection:
            return _key_parts(connection, split, list(keys))

    def assign(self, split: str, digest: Digest) -> str:
        """Let a task join a sealed split; returns its part.

        A task in a part stays there. Any other joins `train`, or raises SplitViolation when one of its
        keys belongs to a holdout. Raises NotFound for an unknown split, or a task without keys.
        """
        part = self.assign_many(split, [digest])[digest]
        if part is None:
            raise SplitViolation(f"split violation: task {digest} shares a key with a holdout of {split!r} and cannot join it")
        return part

    def assign_many(self, split: str, digests: Iterable[Digest]) -> dict[Digest, str | None]:
        """`assign` for many tasks in order, in one transaction; None for a task that a holdout's key keeps out."""
        wanted = list(dict.fromkeys(digests))
        with self._database.write() as connection:
            _require_split(connection, split)
            keys = _keys_of(connection, wanted)
            parts: dict[Digest, str | None] = {**_parts(connection, split, wanted)}
            taken = _key_parts(connection, split, [key for some in keys.values() for key in some])
            joining = []
            for digest in wanted:
                if digest not in keys:
                    raise NotFound(f"no task {digest} with split keys")
                if digest in parts:
                    continue
                fits = all(taken.get(key, TRAIN) == TRAIN for key in keys[digest])
                parts[digest] = TRAIN if fits else None
                if fits:
                    joining.append(digest)
            rows = [{"split": split, "task": digest, "part": TRAIN} for digest in joining]
            insert_rows(connection, split_tasks, rows)
            entries: list[tuple[str, str, dict[str, Json]]] = [
                ("join split", row["task"], {"split": split, "part": TRAIN, "rows": covering({split_tasks: [row]})})
                for row in rows
            ]
            audit.record(connection, entries)
        return parts

    def leave_train(self, split: str, digests: Iterable[Digest]) -> int:
        """Take tasks out of `train`; returns how many were there. Raises SplitViolation for a task of a holdout."""
        wanted = list(dict.fromkeys(digests))
        with self._database.write() as connection:
            _require_split(connection, split)
            leaving = sorted(_parts(connection, split, wanted))
            for digest in leaving:
                connection.execute(delete(split_tasks).where(split_tasks.c.split == split, split_tasks.c.task == digest))
            audit.record(connection, [("leave train", digest, {"split": split}) for digest in leaving])
        return len(leaving)

    def check_split(self, name: str) -> list[str]:
        """What is wrong with a split, one line each; empty when it is sound. Raises NotFound.

        Looks at every task's keys anew, and compares its tasks with those that were sealed, its rows with the
        audit trail, and the triggers that keep it with the registry's own.
        """
        with self._database.read() as connection:
            _require_split(connection, name)
            trail = read_trail(connection)
            return [*trail.problems, *check_guards(connection, _GUARDED), *integrity.check_split(connection, trail, name)]


def _seal(connection: Connection, name: str, digest: Digest, assignment: Mapping[Digest, str]) -> None:
    connection.execute(insert(splits).values(name=name, digest=digest, sealed=False, created_at=now()))
    rows = [{"split": name, "task": task, "part": part} for task, part in sorted(assignment.items())]
    insert_rows(connection, split_tasks, rows)
    connection.execute(update(splits).where(splits.c.name == name).values(sealed=True))
    sizes: Counter[str] = Counter(assignment.values())
    sealed: dict[str, Json] = {"assignment": digest, "parts": dict(sizes), "rows": covering({split_tasks: rows})}
    audit.record(connection, [("seal split", name, sealed)])


def _check_components(connection: Connection, assignment: Mapping[Digest, str]) -> None:
    """The triggers refuse a leak too; this one says which key and which tasks."""
    keys = _keys_of(connection, list(assignment))
    owners: dict[str, tuple[str, Digest]] = {}
    for digest, part in sorted(assignment.items()):
        if digest not in keys:
            raise NotFound(f"no task {digest} with split keys")
        for key in keys[digest]:
            other, first = owners.setdefault(key, (part, digest))
            if other != part:
                raise SplitViolation(f"split violation: key {key!r} joins {first} in {other!r} with {digest} in {part!r}")


def _require_split(connection: Connection, name: str) -> None:
    if connection.execute(select(splits.c.id).where(splits.c.name == name)).first() is None:
        raise NotFound(f"no split {name!r}")


def _keys_of(connection: Connection, digests: list[Digest]) -> dict[Digest, list[str]]:
    keys: dict[Digest, list[str]] = {}
    for some in chunks(digests):
        for task, key in connection.execute(select(task_keys.c.task, task_keys.c.key).where(task_keys.c.task.in_(some))):
            keys.setdefault(task, []).append(key)
    return keys


def _parts(connection: Connection, split: str, digests: list[Digest]) -> dict[Digest, str]:
    parts: dict[Digest, str] = {}
    for some in chunks(digests):
        held = select(split_tasks.c.task, split_tasks.c.part).where(split_tasks.c.split == split, split_tasks.c.task.in_(some))
        parts.update((task, part) for task, part in connection.execute(held))
    return parts


def _key_parts(connection: Connection, split: str, keys: list[str]) -> dict[str, str]:
    parts: dict[str, str] = {}
    for some in chunks(sorted(set(keys))):
        held = select(split_keys.c.key, split_keys.c.part).where(split_keys.c.split == split, split_keys.c.key.in_(some))
        parts.update((key, part) for key, part in connection.execute(held))
    return parts


def _sizes(connection: Connection, split: str) -> dict[str, int]:
    return dict(
        sorted(Counter(connection.execute(select(split_tasks.c.part).where(split_tasks.c.split == split)).scalars()).items())
    )
