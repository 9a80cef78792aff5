"""Looking after the store: is everything that it names there and undamaged, and what does nothing name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Text, select, type_coerce

from factory.core.blobs import get_json
from factory.core.digest import Digest
from factory.core.errors import NotFound, RegistryError
from registry.admission import named_blobs
from registry.audit import AuditStore
from registry.integrity.derived import check_derived
from registry.integrity.guards import check_guards
from registry.integrity.rows import check_rows
from registry.integrity.splits import check_names, check_split
from registry.integrity.trail import read_trail
from registry.splits import SplitStore
from registry.tables import evidence, splits, tasks, trajectories
from registry.tasks import TaskStore

DAY_S = 86_400.0
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What `verify` looked at, and what it found wrong."""

    tasks: int
    blobs: int
    """Blobs whose bytes were hashed."""
    audit_entries: int
    head: Digest
    """Digest of the newest audit entry: noted elsewhere, it shows later that no entry before it is missing."""
    adopted: dict[str, int]
    """Rows of each table that are older than the trail's digests of rows: changed before that, they are not seen."""
    problems: tuple[str, ...]
    """One line each; empty when the store is sound."""


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What garbage collection removed, or would remove."""

    removed: int
    bytes: int
    kept: int
    leftovers: int
    """Temporary files of killed processes."""
    unreadable: tuple[str, ...] = ()
    """What may name blobs and cannot be read, a line each: where there is any, nothing is removed."""


class MaintenanceStore(TaskStore, SplitStore, AuditStore):
    """Checks and garbage collection."""

    def verify(self, head: Digest | None = None) -> Verified:
        """Hash every blob, look for every blob that a task or trajectory names, and compare the tables with the audit trail.

        That is: the chain itself (with `head`, a digest noted earlier, on it), every row that it covers, status, states,
        aliases and splits, and the triggers with those that the migrations install.
        """
        problems: list[str] = []
        blobs = self._hash_blobs(problems)
        count = self._names_by_task(problems)
        with self._database.read() as connection:
            trail = read_trail(connection, head)
            problems.extend(trail.problems)
            problems.extend(check_guards(connection))
            problems.extend(check_rows(connection, trail))
            problems.extend(check_derived(connection, trail))
            problems.extend(check_names(connection, trail))
            for name in connection.execute(select(splits.c.name).order_by(splits.c.id)).scalars():
                problems.extend(f"split {name}: {problem}" for problem in check_split(connection, trail, name))
        return Verified(
            tasks=count,
            blobs=blobs,
            audit_entries=trail.length,
            head=trail.head,
            adopted=dict(trail.adopted),
            problems=tuple(problems),
        )

    def _hash_blobs(self, problems: list[str]) -> int:
        count = 0
        for digest in self.blobs.digests():
            count += 1
            try:
                self.blobs.get(digest)
            except RegistryError as error:
                problems.append(str(error))
        return count

    def _names_by_task(self, problems: list[str]) -> int:
        """Check that what tasks and trajectories name is stored; returns the number of tasks."""
        with self._database.read() as connection:
            rows = connection.execute(select(tasks.c.digest, tasks.c.text)).all()
            parquet = connection.execute(select(trajectories.c.blob).distinct()).scalars().all()
        present: set[Digest] = set()
        for row in rows:
            try:
                named = [row.text, *self._names(row.digest, present)]
            except RegistryError as error:
                problems.append(f"task {row.digest}: {error}")
                continue
            missing = [digest for digest in named if not self.blobs.has(digest)]
            problems.extend(f"task {row.digest}: blob {digest} is not stored" for digest in missing)
            if not missing:  # a tree counts as present only with all of its files
                present.update(named)
        problems.extend(f"trajectories: blob {digest} is not stored" for digest in parquet if not self.blobs.has(digest))
        return len(rows)

    def _names(self, digest: Digest, known: set[Digest]) -> list[Digest]:
        """Every blob that a task needs beside its manifest and text. Raises RegistryError when a manifest cannot be read."""
        task = self._load(digest)
        try:
            return list(named_blobs(task, self.blobs, known))
        except (AttributeError, TypeError, ValueError) as error:
            raise RegistryError(f"a tree of it cannot be read: {error}") from error

    def gc(self, *, grace_s: float = DAY_S, dry_run: bool = False) -> Collected:
        """Remove blobs that nothing names and that nobody put for `grace_s` seconds.

        Named are: the blobs of every task whatever its status, its text, Parquet blobs of trajectories and
        the trees that their episodes left, whole, and every digest that occurs in evidence. The grace keeps
        what a running generator stored and has not registered yet; it must be longer than a run's longest stage.
        Where a manifest cannot be read, whatever is stored may be named by it: everything is kept.
        """
        unreadable: list[str] = []
        live = self._live(unreadable)
        removed = size = kept = 0
        for digest in list(self.blobs.digests()):
            length, age_s = self.blobs.age(digest)
            if unreadable or digest in live or age_s <= grace_s:
                kept += 1
                continue
            removed, size = removed + 1, size + length
            if not dry_run:
                self.blobs.discard(digest)
        self._present.clear()
        leftovers = 0 if dry_run else self.blobs.discard_leftovers(grace_s)
        return Collected(removed=removed, bytes=size, kept=kept, leftovers=leftovers, unreadable=tuple(unreadable))

    def _live(self, unreadable: list[str]) -> set[Digest]:
        with self._database.read() as connection:
            rows = connection.execute(select(tasks.c.digest, tasks.c.text)).all()
            found = connection.execute(select(trajectories.c.blob, trajectories.c.end_tree).distinct()).all()
            mentioned = connection.execute(select(evidence.c.task, type_coerce(evidence.c.data, Text))).all()
        live: set[Digest] = set()
        for row in rows:
            live |= {row.digest, row.text}
            try:
                live.update(self._names(row.digest, live))
            except RegistryError as error:
                unreadable.append(f"task {row.digest}: {error}")
        roots = {digest: f"evidence of task {task}" for task, data in mentioned for digest in _DIGEST.findall(str(data))}
        roots.update((row.end_tree, f"trajectories in {row.blob}") for row in found if row.end_tree is not None)
        live.update(row.blob for row in found)
        for digest, namer in roots.items():
            live.add(digest)
            try:
                live.update(self._files(digest))
            except RegistryError as error:
                unreadable.append(f"{namer}: {error}")
        return live

    def _files(self, digest: Digest) -> Iterator[Digest]:
        """The files of a blob that is a tree's manifest. Raises RegistryError when it is damaged."""
        try:
            manifest = get_json(self.blobs, digest)
        except (NotFound, ValueError):
            return
        if isinstance(manifest, list):
            for item in manifest:
                if isinstance(item, list) and len(item) == 2 and isinstance(item[1], dict):
                    yield str(item[1].get("content"))
