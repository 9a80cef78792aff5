"""One key for each repository, exclusions that stay, rows that no insertion replaces, acceptance on evidence.

- `task_keys`: a kind in one spelling; keys of repositories in canonical form only, and none whose last part is the name
  of an excluded repository, compared exactly.
- `excluded_repositories` is append-only, its names canonical: an exclusion holds for ever.
- `tasks`: `accepted` only where the latest validity evidence is passed.
- SQLite's INSERT OR REPLACE finds no row to replace in a guarded table, by its key or by its rowid.

Rows stay as they are. A task with a repository's key in another form gets the canonical one too, and with it the claims
of its splits: a later task of that repository finds its part. Names that were excluded in another form are excluded in
the canonical one too.
"""

from __future__ import annotations

import logging

import sqlalchemy as sa
from alembic import op

from factory.core.errors import UserError
from factory.core.task import REPOSITORY, canonical_key, repository_key
from registry.migrations.triggers import drop, embedded, refuse

revision = "r0004"
down_revision = "r0003"
branch_labels = None
depends_on = None

logger = logging.getLogger(__name__)

NEVER_REPLACED = {
    "origins": "t.task = NEW.task AND t.digest = NEW.digest",
    "task_keys": "t.task = NEW.task AND t.key = NEW.key",
    **dict.fromkeys(("tasks", "evidence", "status_events", "assessments", "alias_log"), ""),
    **dict.fromkeys(("splits", "split_keys", "split_tasks", "excluded_repositories"), ""),
}
"""Guarded tables of SQLite, with the condition under which a row has the new one's key where no earlier guard looks."""

_NAME = "substr(NEW.key, 12)"
_LAST_PART = f"substr({_NAME}, length(rtrim({_NAME}, replace({_NAME}, '/', ''))) + 1)"
_EXCLUDED = f"""NEW.key LIKE 'repository:%' AND EXISTS (SELECT 1 FROM excluded_repositories e WHERE e.name = {_LAST_PART})"""

_VALID = """coalesce((SELECT e.passed FROM evidence e WHERE e.task = NEW.digest AND e.filter = 'validity'
    ORDER BY e.id DESC LIMIT 1), FALSE)"""

_OF_ELSEWHERE = """SELECT 1 FROM split_tasks s JOIN split_keys k ON k.split = s.split
    WHERE s.task = t.task AND k.key = :new AND k.part <> s.part"""
_LACKING = "t.key = :old AND NOT EXISTS (SELECT 1 FROM task_keys h WHERE h.task = t.task AND h.key = :new)"


def upgrade() -> None:
    drop("guard_21_task_keys_insert", "task_keys")
    _exclude_canonically()
    _add_canonical_keys()
    _guard_keys()
    _guard_exclusions()
    accepted = f"NEW.status = 'accepted' AND NOT {_VALID}"
    refusal = "a task without passed validity evidence is never accepted"
    refuse("guard_tasks_accepted", "tasks", "INSERT", accepted, refusal)
    # What is withdrawn is refused in words of its own.
    moved = f"OLD.status NOT IN ('accepted', 'withdrawn') AND {accepted}"
    refuse("guard_tasks_accepting", "tasks", "UPDATE", moved, refusal, columns="status")
    if embedded():
        _guard_replacements()


def _guard_keys() -> None:
    if embedded():
        kind = "NEW.key NOT GLOB '[a-z]*:?*' OR substr(NEW.key, 1, instr(NEW.key, ':') - 1) GLOB '*[^a-z0-9-]*'"
        kind = f"typeof(NEW.key) <> 'text' OR {kind}"
        other = f"NEW.key GLOB 'repository:*' AND ({_sqlite_other_form('NEW.key', _NAME, 'a-z0-9/-')})"
    else:
        kind = """NEW.key COLLATE "C" !~ '^[a-z][a-z0-9-]*:.'"""
        segment = "[a-z0-9]+(-[a-z0-9]+)*"
        other = f"""NEW.key LIKE 'repository:%' AND {_NAME} COLLATE "C" !~ '^{segment}(/{segment})*$'"""
    refuse("guard_task_keys_kind", "task_keys", "INSERT", kind, "split key without a kind of a-z, 0-9 and - and a value")
    refuse("guard_task_keys_form", "task_keys", "INSERT", other, "split key of a repository that is not in canonical form")
    refuse("guard_task_keys_excluded", "task_keys", "INSERT", _EXCLUDED, "excluded repository: evaluation sets are made of it")


def _guard_exclusions() -> None:
    table = "excluded_repositories"
    for event in ("UPDATE", "DELETE"):
        refuse(f"guard_{table}_{event.lower()}", table, event, "1 = 1", f"{table} is append-only")
    other = "NEW.name COLLATE \"C\" !~ '^[a-z0-9]+(-[a-z0-9]+)*$'"
    if embedded():
        other = _sqlite_other_form("NEW.name", "NEW.name", "a-z0-9-")
    refuse(f"guard_{table}_form", table, "INSERT", other, f"{table} takes names in canonical form, without owner")
    known = f"EXISTS (SELECT 1 FROM {table} e WHERE e.name = NEW.name)"
    refuse(f"guard_{table}_known", table, "INSERT", known, f"{table} is append-only and has that name")


def _sqlite_other_form(column: str, value: str, letters: str) -> str:
    """Condition: `value` of `column` is not words of a-z and 0-9 joined by single `-` and `/`, where `letters` has these."""
    # GLOB, substr() and length() end at a NUL; bytes of a BLOB equal no text.
    plain = f"typeof({column}) <> 'text' OR length(CAST({column} AS BLOB)) <> length({column}) OR {value} = ''"
    patterns = (f"*[^{letters}]*", "[-/]*", "*[-/]", "*[-/][-/]*")
    return " OR ".join([plain, *(f"{value} GLOB '{pattern}'" for pattern in patterns)])


def _guard_replacements() -> None:
    for table, same in NEVER_REPLACED.items():
        # Before an insertion that leaves the rowid to SQLite, NEW.rowid is -1: no row may have that one.
        taken = " OR ".join(filter(None, ("t.rowid = NEW.rowid", same)))
        condition = f"EXISTS (SELECT 1 FROM {table} t WHERE {taken})"
        refuse(f"guard_{table}_replaced", table, "INSERT", condition, f"a row of {table} is never replaced")
        op.execute(
            f"CREATE TRIGGER guard_{table}_rowid AFTER INSERT ON {table} FOR EACH ROW "
            f"WHEN NEW.rowid < 1 BEGIN SELECT RAISE(ABORT, '{table} takes rowids from 1 on'); END"
        )


def _exclude_canonically() -> None:
    held = {row.name: row for row in op.get_bind().execute(sa.text("SELECT * FROM excluded_repositories ORDER BY name"))}
    insertion = sa.text("INSERT INTO excluded_repositories (name, reason, created_at) VALUES (:name, :reason, :created_at)")
    names = set(held)
    for name, row in held.items():
        try:
            canonical = repository_key(name).removeprefix(REPOSITORY).rsplit("/", 1)[-1]
        except UserError:
            continue  # no canonical key can mean it
        if canonical not in names:
            names.add(canonical)
            op.get_bind().execute(insertion, {"name": canonical, "reason": row.reason, "created_at": row.created_at})


def _add_canonical_keys() -> None:
    """Those of holdouts first: where two forms of one name are in two parts, the name belongs to the holdout's."""
    connection = op.get_bind()
    held_out = "EXISTS (SELECT 1 FROM split_keys k WHERE k.key = t.key AND k.part <> 'train')"
    keys = f"SELECT DISTINCT t.key, {held_out} AS held FROM task_keys t WHERE t.key LIKE 'repository:%'"
    found = connection.execute(sa.text(keys)).all()
    excluded = set(connection.execute(sa.text("SELECT name FROM excluded_repositories")).scalars())
    for old, _ in sorted(found, key=lambda row: (not row.held, row.key)):
        try:
            new = canonical_key(old)
        except UserError:
            continue
        if new == old or new.removeprefix(REPOSITORY).rsplit("/", 1)[-1] in excluded:
            continue
        names = {"old": old, "new": new}
        last = "SELECT max(p.position) + 1 FROM task_keys p WHERE p.task = t.task"
        connection.execute(
            sa.text(
                f"INSERT INTO task_keys (task, key, position) SELECT t.task, CAST(:new AS TEXT), ({last}) "
                f"FROM task_keys t WHERE {_LACKING} AND NOT EXISTS ({_OF_ELSEWHERE})"
            ),
            names,
        )
        left = connection.execute(sa.text(f"SELECT count(*) FROM task_keys t WHERE {_LACKING}"), names).scalar_one()
        if left:
            logger.warning("%d tasks keep %r alone: %r belongs to another part of their split", left, old, new)
