"""Trajectories in the registry: one Parquet blob per call, and an index row for each trajectory.

pyarrow is imported where Parquet is written or read: lists of tasks do without its 0.2 seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import select

from factory.core.digest import Digest, Json
from factory.core.errors import NotFound
from factory.core.outcome import OutcomeKind, Termination
from factory.core.trajectory import SAMPLED, Trajectory
from registry import audit
from registry.base import Store
from registry.covered import covering, insert_numbered
from registry.database import now
from registry.tables import trajectories

PURPOSES = ("assess", "evaluate", "train")
"""What the flows sample for."""


@dataclass(frozen=True, kw_only=True)
class TrajectoryRow:
    """What the index knows of one trajectory."""

    id: int
    blob: Digest
    """Parquet blob that holds it."""
    row: int
    """Its row there."""
    task: Digest
    group: str
    member: int
    policy: str
    """Name of the policy version that sampled last; empty where none did."""
    outcome: OutcomeKind
    reason: Termination
    solved: bool
    held_out_solved: bool | None
    """Whether the held-out verifier passed; None where it did not run."""
    tokens: int
    sampled: int
    """Tokens that the policy produced."""
    turns: int
    purpose: str
    run: str | None
    created_at: str


class TrajectoryStore(Store):
    """Storing, listing, reading and exporting trajectories."""

    def add_trajectories(self, items: Sequence[Trajectory], *, purpose: str, run: str | None = None) -> int:
        """Store trajectories as one Parquet blob (see `registry.trajectories`); returns how many were new.

        The same list for the same purpose and run again is a no-op. Raises RegistryError for a value outside the schema.
        """
        if not items:
            return 0
        from registry.trajectories import to_parquet, to_table

        blob = self.blobs.put(to_parquet(to_table(items, purpose=purpose, run=run)))
        rows = [_index_row(item, blob, number, purpose, run) for number, item in enumerate(items)]
        with self._database.write() as connection:
            held = select(trajectories.c.id).where(trajectories.c.blob == blob).limit(1)
            if connection.execute(held).first() is not None:
                return 0
            added = insert_numbered(connection, trajectories, rows)
            data: dict[str, Json] = {"purpose": purpose, "run": run, "rows": covering({trajectories: added})}
            audit.record(connection, [("add trajectories", blob, data)])
        return len(rows)

    def trajectories(
        self,
        *,
        task: Digest | None = None,
        policy: str | None = None,
        purpose: str | None = None,
        run: str | None = None,
        outcome: OutcomeKind | None = None,
        solved: bool | None = None,
        limit: int | None = None,
    ) -> list[TrajectoryRow]:
        """Index rows that fit every filter given, newest first."""
        wanted = {"task": task, "policy": policy, "purpose": purpose, "run": run, "outcome": outcome, "solved": solved}
        statement = select(trajectories).order_by(trajectories.c.id.desc()).limit(limit)
        statement = statement.where(*(trajectories.c[name] == value for name, value in wanted.items() if value is not None))
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(statement)]

    def purposes(self) -> list[str]:
        """Purposes that rollouts have here, sorted, those of the flows among them always."""
        with self._database.read() as connection:
            return sorted({*PURPOSES, *connection.execute(select(trajectories.c.purpose).distinct()).scalars()})

    def trajectory(self, number: int) -> Trajectory:
        """One trajectory by the id of its index row. Raises NotFound."""
        with self._database.read() as connection:
            row = connection.execute(select(trajectories).where(trajectories.c.id == number)).first()
        if row is None:
            raise NotFound(f"no trajectory {number}")
        return next(self.read_trajectories([_row(row)]))

    def read_trajectories(self, rows: Sequence[TrajectoryRow]) -> Iterator[Trajectory]:
        """The trajectories of index rows, in their order; each run of rows from one blob is read at once."""
        from registry.trajectories import from_parquet, from_table

        for blob, some in groupby(rows, key=lambda row: row.blob):
            table = from_parquet(self.blobs.get(blob))
            yield from from_table(table.take([row.row for row in some]))

    def export_trajectories(
        self, path: Path | str, rows: Sequence[TrajectoryRow] | None = None, *, train_reasoning: bool = True
    ) -> int:
        """Write trajectories (default: all, oldest first) as one Parquet file; returns how many.

        The file has the columns of the stored ones and `loss_mask`, and appears whole or not at all.
        """
        import pyarrow.parquet as pq

        from registry.trajectories import export_schema, from_parquet, with_mask

        chosen = list(reversed(self.trajectories())) if rows is None else list(rows)
        target = Path(path)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            with pq.ParquetWriter(partial, export_schema(train_reasoning), compression="zstd") as writer:
                for blob, some in groupby(chosen, key=lambda row: row.blob):
                    table = from_parquet(self.blobs.get(blob)).take([row.row for row in some])
                    writer.write_table(with_mask(table, train_reasoning))
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return len(chosen)


def _index_row(item: Trajectory, blob: Digest, number: int, purpose: str, run: str | None) -> dict[str, Any]:
    outcome = item.outcome
    return {
        "blob": blob,
        "row": number,
        "task": item.task,
        "group_key": item.group,
        "member": item.member,
        "policy": item.policies[-1] if item.policies else "",
        "outcome": outcome.kind.value,
        "reason": outcome.reason.value,
        "solved": outcome.solved,
        "held_out_solved": outcome.held_out.passed if outcome.held_out else None,
        "tokens": len(item.tokens),
        "sampled": sum(owner in SAMPLED for owner in item.tokens.owners),
        "turns": len(item.turns),
        "end_tree": outcome.verdict.end if outcome.verdict else None,
        "purpose": purpose,
        "run": run,
        "created_at": now(),
    }


def _row(row: Any) -> TrajectoryRow:
    return TrajectoryRow(
        id=row.id,
        blob=row.blob,
        row=row.row,
        task=row.task,
        group=row.group_key,
        member=row.member,
        policy=row.policy,
        outcome=OutcomeKind(row.outcome),
        reason=Termination(row.reason),
        solved=row.solved,
        held_out_solved=row.held_out_solved,
        tokens=row.tokens,
        sampled=row.sampled,
        turns=row.turns,
        purpose=row.purpose,
        run=row.run,
        created_at=row.created_at,
    )
