"""Looking after the store: is everything that it names there and undamaged, and what does nothing name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import select

from factory.core.blobs import get_json
from factory.core.digest import Digest
from factory.core.errors import FactoryError, NotFound, RegistryError
from registry.admission import named_blobs
from registry.audit import AuditStore
from registry.splits import SplitStore
from registry.tables import evidence, tasks, trajectories
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


class MaintenanceStore(TaskStore, SplitStore, AuditStore):
    """Checks and garbage collection."""

    def verify(self) -> Verified:
        """Hash every blob, look for every blob that a task or trajectory names, check every split and the audit chain."""
        problems: list[str] = []
        blobs = 0
        for digest in self.blobs.digests():
            blobs += 1
            try:
                self.blobs.get(digest)
            except RegistryError as error:
                problems.append(str(error))
        named = self._names_by_task(problems)
        for split in self.splits():
            problems.extend(f"split {split.name}: {problem}" for problem in self.check_split(split.name))
        entries = 0
        try:
            entries = self.verify_audit()
        except RegistryError as error:
            problems.append(str(error))
        return Verified(tasks=named, blobs=blobs, audit_entries=entries, problems=tuple(problems))

    def _names_by_task(self, problems: list[str]) -> int:
        """Check that what tasks and trajectories name is stored; returns the number of tasks."""
        with self._database.read() as connection:
            rows = connection.execute(select(tasks.c.digest, tasks.c.text)).all()
            parquet = connection.execute(select(trajectories.c.blob).distinct()).scalars().all()
        present: set[Digest] = set()
        for row in rows:
            try:
                task = self._load(row.digest)
                missing = [digest for digest in named_blobs(task, self.blobs, present) if not self.blobs.has(digest)]
                if task.digest != row.digest:
                    problems.append(f"task {row.digest}: its manifest reads as {task.digest}")
                if not self.blobs.has(row.text):
                    missing.append(row.text)
                problems.extend(f"task {row.digest}: blob {digest} is not stored" for digest in missing)
            except FactoryError as error:
                problems.append(f"task {row.digest}: {error}")
        problems.extend(f"trajectories: blob {digest} is not stored" for digest in parquet if not self.blobs.has(digest))
        return len(rows)

    def gc(self, *, grace_s: float = DAY_S, dry_run: bool = False) -> Collected:
        """Remove blobs that nothing names and that nobody put for `grace_s` seconds.

        Named are: the blobs of every task whatever its status, its text, Parquet blobs of trajectories and
        the trees that their episodes left, whole, and every digest that occurs in evidence. The grace keeps
        what a running generator stored and has not registered yet; it must be longer than a run's longest stage.
        """
        live = self._live()
        removed = size = kept = 0
        for digest in list(self.blobs.digests()):
            length, age_s = self.blobs.age(digest)
            if digest in live or age_s <= grace_s:
                kept += 1
                continue
            removed, size = removed + 1, size + length
            if not dry_run:
                self.blobs.discard(digest)
        self._present.clear()
        leftovers = 0 if dry_run else self.blobs.discard_leftovers(grace_s)
        return Collected(removed=removed, bytes=size, kept=kept, leftovers=leftovers)

    def _live(self) -> set[Digest]:
        with self._database.read() as connection:
            rows = connection.execute(select(tasks.c.digest, tasks.c.text)).all()
            found = connection.execute(select(trajectories.c.blob, trajectories.c.end_tree).distinct()).all()
            mentioned = connection.execute(select(evidence.c.data)).scalars().all()
        live: set[Digest] = set()
        for row in rows:
            live |= {row.digest, row.text}
            live.update(list(named_blobs(self._load(row.digest), self.blobs, live)))
        for trajectory in found:
            live.add(trajectory.blob)
            if trajectory.end_tree is not None:
                live.update(self._tree(trajectory.end_tree))
        for data in mentioned:
            for digest in _DIGEST.findall(str(data)):
                live.update(self._tree(digest))
        return live

    def _tree(self, digest: Digest) -> Iterator[Digest]:
        """A blob, and the files of it where it is a tree's manifest."""
        yield digest
        try:
            manifest = get_json(self.blobs, digest)
        except (NotFound, ValueError):
            return
        if isinstance(manifest, list):
            for item in manifest:
                if isinstance(item, list) and len(item) == 2 and isinstance(item[1], dict):
                    yield str(item[1].get("content"))
