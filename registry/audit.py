"""The audit trail: append-only, hash-chained. The database refuses every change of a written entry.

An entry's digest is SHA-256 over the canonical bytes of its number, action, subject, data, instant
and the digest of the entry before it. Cutting off the newest entries leaves a valid chain; compare
with a head that was noted elsewhere (`verify_audit(head=...)`) to see that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from factory.core.digest import Digest, Json, digest_of
from factory.core.errors import RegistryError
from registry.base import Store
from registry.database import insert_rows, json_of, now, raw_columns
from registry.tables import audit

GENESIS: Digest = "0" * 64
"""What stands before the first entry."""


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """One act on the registry."""

    seq: int
    action: str
    subject: str
    """What was acted on: a digest or a name."""
    data: Any
    """A JSON object, unless somebody changed it past the registry."""
    created_at: str
    previous: Digest
    digest: Digest

    @property
    def expected(self) -> Digest:
        """The digest that this content must have."""
        return _digest(self.seq, self.action, self.subject, self.data, self.created_at, self.previous)


def record(connection: Connection, entries: Sequence[tuple[str, str, dict[str, Json]]]) -> None:
    """Append (action, subject, data) in order, in the writer's own transaction. Data holds no floats."""
    last = connection.execute(select(audit.c.seq, audit.c.digest).order_by(audit.c.seq.desc()).limit(1)).first()
    seq, previous = (last.seq, last.digest) if last else (0, GENESIS)
    instant, rows = now(), []
    for action, subject, data in entries:
        seq += 1
        digest = _digest(seq, action, subject, data, instant, previous)
        rows.append(
            {
                "seq": seq,
                "action": action,
                "subject": subject,
                "data": data,
                "created_at": instant,
                "previous": previous,
                "digest": digest,
            }
        )
        previous = digest
    insert_rows(connection, audit, rows)


def _digest(seq: int, action: str, subject: str, data: Any, instant: str, previous: Digest) -> Digest:
    return digest_of({"seq": seq, "action": action, "subject": subject, "data": data, "at": instant, "previous": previous})


class AuditStore(Store):
    """Reading and checking the trail."""

    def audit_log(self, *, subject: str | None = None, action: str | None = None, limit: int | None = None) -> list[AuditEntry]:
        """Entries, newest first."""
        statement = select(audit).order_by(audit.c.seq.desc()).limit(limit)
        if subject is not None:
            statement = statement.where(audit.c.subject == subject)
        if action is not None:
            statement = statement.where(audit.c.action == action)
        with self._database.read() as connection:
            return [AuditEntry(**row) for row in connection.execute(statement).mappings()]

    def audit_head(self) -> Digest:
        """Digest of the newest entry: noted elsewhere, it proves later that nothing before it changed or went."""
        newest = self.audit_log(limit=1)
        return newest[0].digest if newest else GENESIS

    def verify_audit(self, head: Digest | None = None) -> int:
        """Walk the whole chain and return its length.

        Raises RegistryError at the first entry that does not follow from the one before it, or when
        `head`, a digest noted earlier, is not on the chain.
        """
        with self._database.read() as connection:
            trail = Walk(connection, head)
            for _ in trail.entries():
                pass
        if trail.problems:
            raise RegistryError(trail.problems[0])
        return trail.length


class Walk:
    """One pass over the trail, oldest entry first; what is wrong with the chain is in `problems` when it is over."""

    def __init__(self, connection: Connection, head: Digest | None = None) -> None:
        self._connection = connection
        self._noted = head
        self.length = 0
        self.head = GENESIS
        """Digest of the newest entry."""
        self.problems: list[str] = []

    def entries(self) -> Iterator[AuditEntry]:
        """Every entry, those after a broken link too: the chain is told to be broken once."""
        met = self._noted in (None, GENESIS)
        statement = select(*raw_columns(audit)).order_by(audit.c.seq)
        for row in self._connection.execute(statement, execution_options={"yield_per": 1000}).mappings():
            entry = AuditEntry(**{**row, "data": json_of(row["data"])})
            self.length += 1
            if not self.problems and not _follows(entry, self.length, self.head):
                self.problems.append(f"the audit trail is broken at entry {self.length} ({entry.action} {entry.subject})")
            self.head = entry.digest
            met = met or self.head == self._noted
            yield entry
        if not met:
            self.problems.append(f"the audit trail does not contain the noted head {self._noted}: entries are missing")


def _follows(entry: AuditEntry, seq: int, previous: Digest) -> bool:
    try:
        return (entry.seq, entry.previous, entry.digest) == (seq, previous, entry.expected)
    except (TypeError, ValueError):  # content without a canonical form was never written by `record`
        return False
