"""What the database itself refuses, on SQLite and PostgreSQL alike.

- `audit` takes only the next link of its chain; it and the other append-only tables refuse UPDATE and DELETE.
- `tasks`: content never changes, no row goes, nothing leaves `withdrawn`.
- `task_keys`: no key of an excluded repository (r0004 says it anew); keys only grow.
- `split_tasks`, `split_keys`: a task joins a part only when none of its keys is in another part, and then
  claims all of them; once sealed a split takes new tasks only in `train`, and only `train` loses tasks.

SQLite's INSERT OR REPLACE deletes without firing delete triggers, hence the guards on insertion.
"""

from __future__ import annotations

from alembic import op

from registry.migrations.triggers import embedded, postgresql_function, refuse

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None

APPEND_ONLY = ("audit", "origins", "evidence", "status_events", "assessments", "alias_log", "task_keys", "split_keys")

_EXCLUDED = """EXISTS (SELECT 1 FROM excluded_repositories e WHERE NEW.key LIKE 'repository:%' AND (
    lower(replace(replace(substr(NEW.key, 12), '_', '-'), '.', '-')) = e.name
    OR lower(replace(replace(substr(NEW.key, 12), '_', '-'), '.', '-')) LIKE '%/' || e.name))"""

_KEY_ELSEWHERE = """EXISTS (SELECT 1 FROM split_tasks t JOIN split_keys k ON k.split = t.split
    WHERE t.task = NEW.task AND k.key = NEW.key AND k.part <> t.part)"""

_CLAIM_KEY = """INSERT INTO split_keys (split, key, part)
    SELECT t.split, NEW.key, t.part FROM split_tasks t WHERE t.task = NEW.task
    AND NOT EXISTS (SELECT 1 FROM split_keys k WHERE k.split = t.split AND k.key = NEW.key);"""

_TASK_ELSEWHERE = """EXISTS (SELECT 1 FROM task_keys t JOIN split_keys k ON k.key = t.key
    WHERE t.task = NEW.task AND k.split = NEW.split AND k.part <> NEW.part)"""

_CLAIM_KEYS = """INSERT INTO split_keys (split, key, part)
    SELECT NEW.split, t.key, NEW.part FROM task_keys t WHERE t.task = NEW.task
    AND NOT EXISTS (SELECT 1 FROM split_keys k WHERE k.split = NEW.split AND k.key = t.key);"""

_LAST_AUDIT = "(SELECT a.digest FROM audit a ORDER BY a.seq DESC LIMIT 1)"
_BROKEN_CHAIN = f"""NEW.seq <> (SELECT coalesce(max(a.seq), 0) + 1 FROM audit a)
    OR NEW.previous <> coalesce({_LAST_AUDIT}, '{"0" * 64}')"""

# (table, event, moment and columns, condition, refusal)
REFUSALS = [
    *((table, "UPDATE", "", "1 = 1", f"{table} is append-only") for table in APPEND_ONLY),
    *((table, "DELETE", "", "1 = 1", f"{table} is append-only") for table in APPEND_ONLY),
    ("audit", "INSERT", "", _BROKEN_CHAIN, "audit takes only the next link of its chain"),
    ("tasks", "DELETE", "", "1 = 1", "tasks are immutable: withdraw instead"),
    ("tasks", "UPDATE", "digest, kind, name, instruction, text, origin, created_at", "1 = 1", "tasks are immutable"),
    ("tasks", "UPDATE", "status", "OLD.status = 'withdrawn' AND NEW.status <> 'withdrawn'", "a withdrawn task stays withdrawn"),
    ("tasks", "INSERT", "", "EXISTS (SELECT 1 FROM tasks t WHERE t.digest = NEW.digest)", "tasks are immutable"),
    ("task_keys", "INSERT", "", _EXCLUDED, "excluded repository: evaluation sets are made of it"),
    ("task_keys", "INSERT", "", _KEY_ELSEWHERE, "split violation: the key belongs to another part"),
    ("splits", "UPDATE", "", "OLD.sealed", "split violation: a sealed split never changes"),
    ("splits", "DELETE", "", "1 = 1", "split violation: a split is never removed"),
    ("splits", "INSERT", "", "EXISTS (SELECT 1 FROM splits s WHERE s.name = NEW.name)", "split violation: the split exists"),
    (
        "split_keys",
        "INSERT",
        "",
        "EXISTS (SELECT 1 FROM split_keys k WHERE k.split = NEW.split AND k.key = NEW.key)",
        "split violation: the key has its part",
    ),
    ("split_tasks", "INSERT", "", _TASK_ELSEWHERE, "split violation: a key of the task belongs to another part"),
    (
        "split_tasks",
        "INSERT",
        "",
        "NOT EXISTS (SELECT 1 FROM task_keys t WHERE t.task = NEW.task)",
        "split violation: a task without keys has no part",
    ),
    (
        "split_tasks",
        "INSERT",
        "",
        "NEW.part <> 'train' AND EXISTS (SELECT 1 FROM splits s WHERE s.name = NEW.split AND s.sealed)",
        "split violation: a sealed holdout never changes",
    ),
    (
        "split_tasks",
        "INSERT",
        "",
        "EXISTS (SELECT 1 FROM split_tasks t WHERE t.split = NEW.split AND t.task = NEW.task)",
        "split violation: the task has its part",
    ),
    ("split_tasks", "UPDATE", "", "1 = 1", "split violation: a task never changes its part"),
    ("split_tasks", "DELETE", "", "OLD.part <> 'train'", "split violation: a holdout never changes"),
]

CLAIMS = [("task_keys", _CLAIM_KEY), ("split_tasks", _CLAIM_KEYS)]
"""What follows an insertion: the keys of a task in a split belong to its part."""


def upgrade() -> None:
    for number, (table, event, columns, condition, refusal) in enumerate(REFUSALS):
        refuse(f"guard_{number:02d}_{table}_{event.lower()}", table, event, condition, refusal, columns=columns)
    for table, claim in CLAIMS:
        name = f"claim_{table}"
        if embedded():
            op.execute(f"CREATE TRIGGER {name} AFTER INSERT ON {table} FOR EACH ROW BEGIN {claim} END")
        else:
            postgresql_function(name, f"{claim} RETURN NULL;")
            op.execute(f"CREATE TRIGGER {name} AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()")
    if not embedded():
        _postgresql_truncations()


def _postgresql_truncations() -> None:
    refusal = "RAISE EXCEPTION '% is never emptied', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';"
    postgresql_function("guard_truncate", refusal)
    for table in (*APPEND_ONLY, "tasks", "splits", "split_tasks", "excluded_repositories"):
        op.execute(f"CREATE TRIGGER guard_{table}_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION guard_truncate()")
