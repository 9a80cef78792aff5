"""Tasks in the registry: registering candidates, and reading them back by reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, select

from factory.core.assessment import TaskStatus
from factory.core.digest import Digest, Json, is_digest
from factory.core.errors import NotFound, RegistryError, UserError
from factory.core.task import Candidate, Origin, SplitKeys, Task
from registry import audit
from registry.admission import Admitted, admit, check_keys, repository_name
from registry.base import Store
from registry.covered import covering
from registry.database import chunks, insert_rows, is_prefix, now, plain
from registry.tables import aliases, excluded_repositories, origins, status_events, task_families, task_keys, tasks

_PRESENT_LIMIT = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Registered:
    """What registering a candidate did."""

    digest: Digest
    created: bool
    """False when the registry had this content already."""
    new_origin: bool = True
    """Whether this origin was not known of it."""


class TaskStore(Store):
    """Registering and resolving tasks."""

    _present: set[Digest]

    def register(self, candidate: Candidate, *, run: str | None = None) -> Registered:
        """Register one candidate; known content returns what exists, with its new origin, keys and families added.

        Raises what `register_many` raises.
        """
        return self.register_many([candidate], run=run)[0]

    def register_many(self, candidates: Iterable[Candidate], *, run: str | None = None) -> list[Registered]:
        """Register candidates in one transaction, in order: all of them, or none when one is refused.

        Raises InvalidTask (empty instruction, unknown scheme, no provenance, no split keys), NotFound (a
        blob that a task names is not stored), Excluded (a repository of an evaluation set), SplitViolation
        (a new key of a known task belongs to another part of a sealed split).
        """
        excluded = frozenset(self.excluded())
        if len(self._present) > _PRESENT_LIMIT:
            self._present.clear()
        admitted = [admit(candidate, self.blobs, self._present, excluded) for candidate in candidates]
        texts = []
        for one in admitted:
            self.blobs.put(one.manifest)
            texts.append(self.blobs.put(one.candidate.text.encode("utf-8", "surrogatepass")))
        with self._database.write() as connection:
            return _Registration(connection, run).insert(admitted, texts)

    def has_task(self, digest: Digest) -> bool:
        """Whether a task of this digest was ever registered."""
        return bool(self.known([digest]))

    def known(self, digests: Iterable[Digest]) -> set[Digest]:
        """Those of `digests` that are registered, whatever their status."""
        with self._database.read() as connection:
            return _known(connection, list(digests))

    def resolve(self, reference: str) -> Digest:
        """The digest that `reference` means: a full digest, a unique prefix of 8 or more digits, a name, or an alias.

        An alias of a withdrawn task does not resolve. Raises NotFound when nothing fits, UserError when several tasks do.
        """
        with self._database.read() as connection:
            found = _matches(connection, reference)
        if not found:
            raise NotFound(f"no task {reference!r}: give a digest, at least 8 digits of one, a name or an alias")
        if len(found) > 1:
            raise UserError("task", reference, f"a reference that fits one task; this fits {', '.join(found)}")
        return found[0]

    def task(self, reference: str) -> Task:
        """The task that `reference` means (see `resolve`). Raises RegistryError when its manifest is damaged."""
        return self._load(self.resolve(reference))

    def candidate(self, reference: str) -> Candidate:
        """The task with its first origin, name, families, keys and text, as it was registered."""
        digest = self.resolve(reference)
        with self._database.read() as connection:
            row = connection.execute(select(tasks).where(tasks.c.digest == digest)).one()
            families = connection.execute(_ordered(task_families, task_families.c.family, digest)).scalars().all()
            keys = connection.execute(_ordered(task_keys, task_keys.c.key, digest)).scalars().all()
        return Candidate(
            task=self._load(digest),
            origin=self.origins(digest)[0],
            name=row.name,
            families=tuple(families),
            keys=SplitKeys(keys=tuple(keys)),
            text=self.blobs.get(row.text).decode("utf-8", "surrogatepass"),
        )

    def origins(self, digest: Digest) -> list[Origin]:
        """Every origin of a task, the first one first."""
        first = tasks.c.origin == origins.c.digest
        statement = (
            select(origins.c.manifest)
            .join(tasks, tasks.c.digest == origins.c.task)
            .where(origins.c.task == digest)
            .order_by(first.desc(), origins.c.created_at, origins.c.digest)
        )
        with self._database.read() as connection:
            return [Origin(**manifest) for manifest in connection.execute(statement).scalars()]

    def keys(self, digest: Digest) -> tuple[str, ...]:
        """The split keys of a task, later ones last."""
        with self._database.read() as connection:
            return tuple(connection.execute(_ordered(task_keys, task_keys.c.key, digest)).scalars())

    def add_keys(self, additions: Sequence[tuple[Digest, str]]) -> None:
        """Give known tasks further split keys (a near-duplicate cluster, for one); known pairs are no-ops.

        All or none. Raises NotFound for an unknown task, Excluded, or SplitViolation when a key of a task
        in a split belongs to another part of it.
        """
        excluded = frozenset(self.excluded())
        for digest, key in additions:
            check_keys((key,), digest, excluded)
        with self._database.write() as connection:
            missing = {digest for digest, _ in additions} - _known(connection, [digest for digest, _ in additions])
            if missing:
                raise NotFound(f"no task {min(missing)}")
            entries: list[tuple[str, str, dict[str, Json]]] = [
                ("add key", row["task"], {"key": row["key"], "rows": covering({task_keys: [row]})})
                for row in _add_keys(connection, list(additions))
            ]
            audit.record(connection, entries)

    def excluded(self) -> dict[str, str]:
        """Repositories of which no task can be registered, with the reason of each."""
        with self._database.read() as connection:
            rows = connection.execute(select(excluded_repositories.c.name, excluded_repositories.c.reason))
            return {row.name: row.reason for row in rows}

    def exclude(self, repository: str, reason: str) -> None:
        """Refuse tasks of `repository` from now on; a no-op when it is excluded. Earlier ones stay until they are withdrawn.

        Any spelling, owner and all, excludes the name with every owner, and for ever. Raises UserError for no name.
        """
        name = repository_name(repository)
        with self._database.write() as connection:
            if _excluded(connection, name):
                return
            insert_rows(connection, excluded_repositories, [{"name": name, "reason": plain(reason), "created_at": now()}])
            audit.record(connection, [("exclude", name, {"reason": plain(reason)})])

    def _load(self, digest: Digest) -> Task:
        try:
            return Task.load(self.blobs, digest)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RegistryError(f"task {digest} cannot be read: {error}") from error


class _Registration:
    """One transaction's worth of candidates: new tasks, new origins of known ones, and what hangs on both."""

    def __init__(self, connection: Connection, run: str | None) -> None:
        self._connection = connection
        self._run = run
        self._now = now()

    def insert(self, admitted: list[Admitted], texts: list[Digest]) -> list[Registered]:
        known = _known(self._connection, [one.digest for one in admitted])
        traced = self._known_origins(known)
        results, rows, sources = [], [], []
        for one, text in zip(admitted, texts, strict=True):
            created, new_origin = one.digest not in known, (one.digest, one.origin) not in traced
            if created:
                rows.append(self._task_row(one, text))
                known.add(one.digest)
            if new_origin:
                sources.append(one)
                traced.add((one.digest, one.origin))
            results.append(Registered(digest=one.digest, created=created, new_origin=new_origin))
        self._write(rows, sources)
        return results

    def _write(self, rows: list[dict[str, Any]], sources: list[Admitted]) -> None:
        insert_rows(self._connection, tasks, rows)
        traces = [self._origin_row(one) for one in sources]
        insert_rows(self._connection, origins, traces)
        insert_rows(
            self._connection,
            status_events,
            [
                {
                    "task": row["digest"],
                    "old": None,
                    "new": TaskStatus.CANDIDATE.value,
                    "reason": "registered",
                    "run": self._run,
                    "created_at": self._now,
                }
                for row in rows
            ],
        )
        families = [(one.digest, family) for one in sources for family in one.candidate.families]
        keys = [(one.digest, key) for one in sources for key in one.candidate.keys.keys]
        added = {
            tasks: rows,
            origins: traces,
            task_families: _add_pairs(self._connection, task_families, "family", families),
            task_keys: _add_keys(self._connection, keys),
        }
        audit.record(self._connection, self._entries(sources, added))

    def _entries(
        self, sources: list[Admitted], added: dict[Table, list[dict[str, Any]]]
    ) -> list[tuple[str, str, dict[str, Json]]]:
        """An entry for each origin; a task's first one covers all of its rows but the other origins'."""
        of_task: dict[Digest, dict[Table, list[dict[str, Any]]]] = {one.digest: {} for one in sources}
        for table in (tasks, task_families, task_keys):
            for row in added[table]:
                of_task[row["digest" if table is tasks else "task"]].setdefault(table, []).append(row)
        entries: list[tuple[str, str, dict[str, Json]]] = []
        for one, trace in zip(sources, added[origins], strict=True):
            rows = of_task[one.digest]
            act = "register" if tasks in rows else "add origin"
            entries.append(
                (act, one.digest, {"origin": one.origin, "run": self._run, "rows": covering({**rows, origins: [trace]})})
            )
            of_task[one.digest] = {}
        return entries

    def _known_origins(self, digests: set[Digest]) -> set[tuple[Digest, Digest]]:
        pairs: set[tuple[Digest, Digest]] = set()
        for some in chunks(sorted(digests)):
            rows = self._connection.execute(select(origins.c.task, origins.c.digest).where(origins.c.task.in_(some)))
            pairs.update((task, digest) for task, digest in rows)
        return pairs

    def _task_row(self, one: Admitted, text: Digest) -> dict[str, Any]:
        return {
            "digest": one.digest,
            "kind": one.candidate.task.kind.value,
            "name": plain(one.candidate.name),
            "status": TaskStatus.CANDIDATE.value,
            "reason": "",
            "instruction": one.instruction,
            "text": text,
            "origin": one.origin,
            "run": self._run,
            "created_at": self._now,
        }

    def _origin_row(self, one: Admitted) -> dict[str, Any]:
        origin = one.candidate.origin
        return {
            "task": one.digest,
            "digest": one.origin,
            "generator": plain(origin.generator),
            "generator_version": plain(origin.generator_version),
            "operator": None if origin.operator is None else plain(origin.operator),
            "source": None if origin.source is None else plain(origin.source),
            "template": None if origin.template is None else plain(origin.template),
            "manifest": origin.manifest(),
            "run": self._run,
            "created_at": self._now,
        }


def _known(connection: Connection, digests: list[Digest]) -> set[Digest]:
    found: set[Digest] = set()
    for some in chunks(digests):
        found.update(connection.execute(select(tasks.c.digest).where(tasks.c.digest.in_(some))).scalars())
    return found


def _excluded(connection: Connection, name: str) -> bool:
    found = select(excluded_repositories.c.name).where(excluded_repositories.c.name == name)
    return connection.execute(found).first() is not None


def _ordered(table: Any, column: Any, digest: Digest) -> Any:
    return select(column).where(table.c.task == digest).order_by(table.c.position)


def _add_keys(connection: Connection, pairs: list[tuple[Digest, str]]) -> list[dict[str, Any]]:
    return _add_pairs(connection, task_keys, "key", pairs)


def _add_pairs(connection: Connection, table: Table, column: str, pairs: list[tuple[Digest, str]]) -> list[dict[str, Any]]:
    """Append values to the ordered sets of tasks; returns the rows of those that were new."""
    held: dict[Digest, list[str]] = {}
    for some in chunks(sorted({digest for digest, _ in pairs})):
        statement = select(table.c.task, table.c[column]).where(table.c.task.in_(some)).order_by(table.c.position)
        for digest, value in connection.execute(statement):
            held.setdefault(digest, []).append(value)
    rows: list[dict[str, Any]] = []
    for digest, value in pairs:
        values = held.setdefault(digest, [])
        if plain(value) not in values:
            rows.append({"task": digest, column: plain(value), "position": len(values)})
            values.append(plain(value))
    insert_rows(connection, table, rows)
    return rows


def _matches(connection: Connection, reference: str) -> list[Digest]:
    """At most a few digests that `reference` fits, sorted."""
    if is_digest(reference):
        return sorted(_known(connection, [reference]))
    found: set[Digest] = set()
    if is_prefix(reference):
        # "g" follows every hexadecimal digit: a range, which the primary key's index answers.
        within = tasks.c.digest.between(reference, reference + "g")
        found.update(connection.execute(select(tasks.c.digest).where(within).limit(4)).scalars())
    found.update(connection.execute(select(tasks.c.digest).where(tasks.c.name == reference).limit(4)).scalars())
    named = select(tasks.c.digest).join(aliases, aliases.c.digest == tasks.c.digest).where(aliases.c.name == reference)
    found.update(connection.execute(named.where(tasks.c.status != TaskStatus.WITHDRAWN.value)).scalars())
    return sorted(found)
