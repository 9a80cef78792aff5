"""Policy versions by line, aliases that move by compare-and-set, and lineage edges."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from factory.core.digest import Digest, is_digest
from factory.core.errors import Conflict, NotFound, UserError
from factory.core.policy import PolicyVersion
from registry import audit
from registry.base import Store
from registry.covered import covering, insert_numbered
from registry.database import insert_rows, is_prefix, now, upsert
from registry.tables import alias_log, aliases, lineage, policies, tasks

LONGEST_ALIAS = 200
"""Most characters of an alias."""

_DIGITS = re.compile(r"[0-9a-fA-F]{8,}")


@dataclass(frozen=True, kw_only=True)
class PolicyRow:
    """A registered policy version and where its weights are."""

    version: PolicyVersion
    parent: Digest | None
    """Weights that these were trained from."""
    path: str
    """Folder (or name at a model hub) of the weights."""
    format: str
    """How the policy writes actions: the name of its `ActionFormat`."""
    created_at: str


@dataclass(frozen=True, kw_only=True)
class AliasMove:
    """One move of an alias."""

    name: str
    old: Digest | None
    new: Digest
    created_at: str


@dataclass(frozen=True, order=True)
class Edge:
    """`child` came out of `parent`; both are digests or names."""

    child: str
    parent: str
    relation: str
    """`trained from`, `trained on`, and the like."""


class PolicyStore(Store):
    """Policy versions, aliases and lineage."""

    def add_policy(self, version: PolicyVersion, *, path: str, format: str, parent: Digest | None = None) -> bool:
        """Register a version of a line; False when the line has these weights. The newest registered is the latest.

        Raises NotFound when `parent` is no version of any line.
        """
        row = {
            "line": version.line,
            "weights": version.weights,
            "step": version.step,
            "parent": parent,
            "path": path,
            "format": format,
            "created_at": now(),
        }
        with self._database.write() as connection:
            of_line = select(policies.c.id).where(policies.c.line == version.line, policies.c.weights == version.weights)
            if connection.execute(of_line).first() is not None:
                return False
            edges: list[dict[str, Any]] = []
            if parent is not None:
                if connection.execute(select(policies.c.id).where(policies.c.weights == parent)).first() is None:
                    raise NotFound(f"no policy version {parent}: the parent of {version.name} must be registered before it")
                edges = _link(connection, [Edge(version.weights, parent, "trained from")])
            rows = covering({policies: insert_numbered(connection, policies, [row]), lineage: edges})
            audit.record(
                connection, [("add policy", version.weights, {"line": version.line, "step": version.step, "rows": rows})]
            )
        return True

    def policies(self, line: str | None = None) -> list[PolicyRow]:
        """Versions in the order of their registration: of one line, or of all."""
        statement = select(policies).order_by(policies.c.id)
        if line is not None:
            statement = statement.where(policies.c.line == line)
        with self._database.read() as connection:
            return [_policy(row) for row in connection.execute(statement)]

    def latest_policy(self, line: str) -> PolicyRow | None:
        """The version of a line that was registered last."""
        statement = select(policies).where(policies.c.line == line).order_by(policies.c.id.desc()).limit(1)
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else _policy(row)

    def policy(self, reference: str) -> PolicyRow:
        """A version by `line@digits`, by digest or a prefix of 8 or more digits, or by alias.

        Raises NotFound when nothing fits, UserError when several versions do.
        """
        line, _, digits = reference.rpartition("@")
        with self._database.read() as connection:
            target = select(aliases.c.digest).where(aliases.c.name == reference)
            digits = connection.execute(target).scalar_one_or_none() or digits
            if not is_digest(digits) and not is_prefix(digits):
                raise NotFound(f"no policy {reference!r}: give line@digits, a digest, at least 8 digits of one, or an alias")
            statement = select(policies).where(policies.c.weights.between(digits, digits + "g")).order_by(policies.c.id)
            if line:
                statement = statement.where(policies.c.line == line)
            rows = connection.execute(statement).all()
        if not rows:
            raise NotFound(f"no policy {reference!r}")
        if len(rows) > 1:
            names = ", ".join(_policy(row).version.name for row in rows[:4])
            raise UserError("policy", reference, f"a reference that fits one version; this fits {names}")
        return _policy(rows[0])

    def alias_set(self, name: str, digest: Digest, *, expected: Digest | None) -> None:
        """Point an alias at `digest`, provided that it points at `expected` now (None: that it does not exist).

        Raises Conflict otherwise, and UserError for a name that means something else already, or a target that is none.
        """
        _check_alias(name)
        if not is_digest(digest):
            raise UserError("digest", digest, "64 lower-case hexadecimal digits")
        with self._database.write() as connection:
            if connection.execute(select(tasks.c.digest).where(tasks.c.name == name).limit(1)).first() is not None:
                raise UserError("alias", name, "a name that no task has")
            held = connection.execute(select(aliases.c.digest).where(aliases.c.name == name)).scalar_one_or_none()
            if held != expected:
                raise Conflict(f"alias {name!r} points at {held or 'nothing'}, not at {expected or 'nothing'}")
            instant = now()
            upsert(connection, aliases, [{"name": name, "digest": digest, "updated_at": instant}], keys=("name",))
            insert_rows(connection, alias_log, [{"name": name, "old": held, "new": digest, "created_at": instant}])
            audit.record(connection, [("move alias", name, {"old": held, "new": digest})])

    def alias(self, name: str) -> Digest:
        """Where an alias points. Raises NotFound."""
        with self._database.read() as connection:
            held = connection.execute(select(aliases.c.digest).where(aliases.c.name == name)).scalar_one_or_none()
        if held is None:
            raise NotFound(f"no alias {name!r}")
        return str(held)

    def aliases(self) -> dict[str, Digest]:
        """Every alias and where it points."""
        with self._database.read() as connection:
            rows = connection.execute(select(aliases.c.name, aliases.c.digest).order_by(aliases.c.name))
            return {row.name: row.digest for row in rows}

    def alias_log(self, name: str | None = None) -> list[AliasMove]:
        """Moves of one alias, or of all, oldest first."""
        statement = select(alias_log).order_by(alias_log.c.id)
        if name is not None:
            statement = statement.where(alias_log.c.name == name)
        with self._database.read() as connection:
            rows = connection.execute(statement).all()
        return [AliasMove(name=row.name, old=row.old, new=row.new, created_at=row.created_at) for row in rows]

    def link(self, edges: list[Edge]) -> None:
        """Record lineage edges; known ones are no-ops."""
        with self._database.write() as connection:
            added = _link(connection, edges)
            if added:
                audit.record(connection, [("link", lineage.name, {"rows": covering({lineage: added})})])

    def ancestors(self, node: str) -> list[Edge]:
        """Every edge on the way up from `node`, sorted."""
        return self._walk(node, lineage.c.child, lineage.c.parent)

    def descendants(self, node: str) -> list[Edge]:
        """Every edge on the way down from `node`, sorted."""
        return self._walk(node, lineage.c.parent, lineage.c.child)

    def _walk(self, node: str, near: Any, far: Any) -> list[Edge]:
        reached = (
            select(lineage.c.child, lineage.c.parent, lineage.c.relation).where(near == node).cte("reached", recursive=True)
        )
        known = reached.c.parent if far.name == "parent" else reached.c.child
        further = select(lineage.c.child, lineage.c.parent, lineage.c.relation).join(reached, near == known)
        with self._database.read() as connection:
            rows = connection.execute(select(reached.union(further)))
            return sorted(Edge(row.child, row.parent, row.relation) for row in rows)


def _check_alias(name: str) -> None:
    """Raises UserError for what cannot be typed, seen or told from a digest or a policy version."""
    if not 0 < len(name) <= LONGEST_ALIAS or not name.isprintable() or name != name.strip():
        raise UserError("alias", name, f"1 to {LONGEST_ALIAS} printable characters, without space at either end")
    if _DIGITS.fullmatch(name.rpartition("@")[2]):
        raise UserError("alias", name, "a name that cannot be read as a digest, the beginning of one, or a policy version")


def _policy(row: Any) -> PolicyRow:
    return PolicyRow(
        version=PolicyVersion(line=row.line, weights=row.weights, step=row.step),
        parent=row.parent,
        path=row.path,
        format=row.format,
        created_at=row.created_at,
    )


def _link(connection: Connection, edges: list[Edge]) -> list[dict[str, Any]]:
    """Add the edges that are new; returns their rows."""
    added = []
    for edge in dict.fromkeys(edges):
        values = {"child": edge.child, "parent": edge.parent, "relation": edge.relation}
        matches = [lineage.c[name] == value for name, value in values.items()]
        if connection.execute(select(lineage.c.child).where(*matches)).first() is None:
            added.append({**values, "created_at": now()})
            insert_rows(connection, lineage, added[-1:])
    return added
