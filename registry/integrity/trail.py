"""What must stand in the tables, by the audit trail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import Connection

from factory.core.assessment import TaskStatus
from factory.core.digest import Digest
from registry.audit import GENESIS, AuditEntry, Walk
from registry.covered import row_digest, row_key
from registry.tables import TRAIN, split_tasks

Change: TypeAlias = tuple[Any, ...]
"""A status event: old, new, reason, run."""


@dataclass(kw_only=True)
class SplitTrail:
    """What happened to a split: the assignment's digest, then (join or leave, task), oldest first."""

    assignment: Digest
    moves: list[tuple[str, Digest]] = field(default_factory=list)


@dataclass(kw_only=True)
class Trail:
    """Everything that the entries say, gathered in one pass."""

    length: int = 0
    head: Digest = GENESIS
    problems: list[str] = field(default_factory=list)
    """What is wrong with the chain itself, and entries that contradict each other."""
    rows: dict[str, dict[str, tuple[Digest, int]]] = field(default_factory=lambda: defaultdict(dict))
    """Table, row's key: the row's digest and the number of the entry that covers it."""
    adopted: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Rows of each table that were there before the trail covered rows."""
    covering: bool = False
    """Whether an entry has covered the rows of its own act."""
    statuses: dict[Digest, list[Change]] = field(default_factory=lambda: defaultdict(list))
    origins: set[tuple[Digest, Digest]] = field(default_factory=set)
    moves: dict[str, list[tuple[Any, Any]]] = field(default_factory=lambda: defaultdict(list))
    """Alias: from where to where it moved."""
    splits: dict[str, SplitTrail] = field(default_factory=dict)
    excluded: set[str] = field(default_factory=set)
    runs: dict[str, Any] = field(default_factory=dict)
    """Run: digest of the configuration that it was begun with."""


def read_trail(connection: Connection, head: Digest | None = None) -> Trail:
    """Walk the chain (see `registry.audit`) and gather what it says."""
    trail = Trail()
    walk = Walk(connection, head)
    for entry in walk.entries():
        data = entry.data if isinstance(entry.data, Mapping) else {}
        _note_rows(trail, entry, data)
        _note_act(trail, entry, data)
    trail.length, trail.head = walk.length, walk.head
    trail.problems[:0] = walk.problems
    return trail


def _note_rows(trail: Trail, entry: AuditEntry, data: Mapping[str, Any]) -> None:
    rows = data.get("rows")
    if not isinstance(rows, Mapping):
        return
    for table, digests in rows.items():
        held = trail.rows[table]
        if not isinstance(digests, Mapping):
            continue
        for key, digest in digests.items():
            if key in held:
                trail.problems.append(f"{table} {key}: audit entry {entry.seq} covers it anew after entry {held[key][1]}")
            held[key] = (digest, entry.seq)
        if entry.action == "adopt rows":
            trail.adopted[table] += len(digests)
        else:
            trail.covering = True
    if entry.action == "adopt rows" and trail.covering:
        trail.problems.append(f"audit entry {entry.seq} adopts rows after the trail began to cover them")


def _note_act(trail: Trail, entry: AuditEntry, data: Mapping[str, Any]) -> None:
    subject = entry.subject
    match entry.action:
        case "register":
            trail.statuses[subject].append((None, TaskStatus.CANDIDATE.value, "registered", data.get("run")))
            trail.origins.add((subject, str(data.get("origin"))))
        case "add origin":
            trail.origins.add((subject, str(data.get("origin"))))
        case "set status":
            trail.statuses[subject].append((data.get("old"), data.get("new"), data.get("reason"), data.get("run")))
        case "move alias":
            trail.moves[subject].append((data.get("old"), data.get("new")))
        case "exclude":
            trail.excluded.add(subject)
        case "begin run":
            trail.runs[subject] = data.get("config")
        case "seal split":
            trail.splits[subject] = SplitTrail(assignment=str(data.get("assignment")))
        case "join split" | "leave train":
            split = trail.splits.get(str(data.get("split")))
            if split is not None:
                split.moves.append((entry.action, subject))
            if entry.action == "leave train":
                _leave(trail, {"split": str(data.get("split")), "task": subject, "part": TRAIN})


def _leave(trail: Trail, row: dict[str, str]) -> None:
    held, key = trail.rows[split_tasks.name], row_key(split_tasks, row)
    # Any other row stays expected: nothing leaves a holdout.
    if key in held and held[key][0] == row_digest(split_tasks, row):
        del held[key]
