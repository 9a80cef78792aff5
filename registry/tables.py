"""The tables. Digests are 64 hexadecimal digits, timestamps are UTC in ISO 8601, JSON is text.

What the database itself refuses (changes of immutable rows, leaks across a split, excluded repositories,
acceptance without evidence) is written as triggers in `r0002_guards.py` and `r0004_canonical.py` of `migrations/versions`.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from factory.core.assessment import TaskStatus
from factory.core.errors import RegistryError

TRAIN = "train"
"""The one part of a split that may change; every other part is a holdout."""


class JsonText(TypeDecorator[Any]):
    """JSON as text, keys sorted: the same bytes on every database. NaN and infinities are refused (ValueError)."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, sort_keys=True, allow_nan=False)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if value is None:
            return None
        try:
            return json.loads(value)
        except (TypeError, ValueError):
            raise RegistryError(f"the registry holds {str(value)[:40]!r} where JSON must be: `factory tasks verify`") from None


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _digest(name: str, *arguments: Any, **options: Any) -> Column[str]:
    return Column(name, String(64), *arguments, **options)


def _task(**options: Any) -> Column[str]:
    return _digest("task", ForeignKey("tasks.digest"), nullable=False, **options)


def _text(name: str, **options: Any) -> Column[str]:
    return Column(name, Text, nullable=options.pop("nullable", False), **options)


def _run() -> Column[str]:
    return Column("run", Text, ForeignKey("runs.id"), nullable=True)


def _created() -> Column[str]:
    return Column("created_at", String(32), nullable=False)


def _json(name: str) -> Column[Any]:
    return Column(name, JsonText, nullable=False)


def _number(name: str, **options: Any) -> Column[int]:
    return Column(name, Integer, nullable=False, **options)


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True, autoincrement=True)


runs = Table(
    "runs",
    metadata,
    _text("id", primary_key=True),
    _text("flow"),
    _text("date"),
    _digest("config", nullable=False),
    _text("state"),
    _text("reason"),
    _created(),
    Column("finished_at", String(32)),
    UniqueConstraint("flow", "date"),
    CheckConstraint("state IN ('running', 'finished', 'stopped', 'failed')", name="state"),
)

run_stages = Table(
    "run_stages",
    metadata,
    Column("run", Text, ForeignKey("runs.id"), nullable=False),
    _text("stage"),
    Column("seconds", Double, nullable=False),
    _json("data"),
    Column("updated_at", String(32), nullable=False),
    PrimaryKeyConstraint("run", "stage"),
)

run_events = Table(
    "run_events",
    metadata,
    _id(),
    Column("run", Text, ForeignKey("runs.id"), nullable=False, index=True),
    _text("stage"),
    _text("event"),
    _json("data"),
    _created(),
)

tasks = Table(
    "tasks",
    metadata,
    _digest("digest", primary_key=True),
    _text("kind"),
    _text("name", index=True),
    _text("status"),
    _text("reason"),
    _digest("instruction", nullable=False),
    _digest("text", nullable=False),
    _digest("origin", nullable=False),
    _run(),
    _created(),
    Index(None, "status", "name"),
    Index(None, "kind", "name"),
    CheckConstraint("status IN ({})".format(", ".join(f"'{status.value}'" for status in TaskStatus)), name="status"),
    CheckConstraint("length(digest) = 64", name="digest"),
)

origins = Table(
    "origins",
    metadata,
    _task(),
    _digest("digest", nullable=False),
    _text("generator"),
    _text("generator_version"),
    _text("operator", nullable=True),
    _text("source", nullable=True, index=True),
    _text("template", nullable=True),
    _json("manifest"),
    _run(),
    _created(),
    PrimaryKeyConstraint("task", "digest"),
)

task_families = Table(
    "task_families",
    metadata,
    _task(),
    _text("family", index=True),
    _number("position"),
    PrimaryKeyConstraint("task", "family"),
)

task_keys = Table(
    "task_keys",
    metadata,
    _task(),
    _text("key", index=True),
    _number("position"),
    PrimaryKeyConstraint("task", "key"),
)

excluded_repositories = Table(
    "excluded_repositories",
    metadata,
    _text("name", primary_key=True),
    _text("reason"),
    _created(),
)

evidence = Table(
    "evidence",
    metadata,
    _id(),
    _task(index=True),
    _text("filter"),
    _text("rule"),
    Column("passed", Boolean, nullable=False),
    _text("reason"),
    _json("data"),
    _run(),
    _created(),
    Index(None, "filter", "passed"),
)

status_events = Table(
    "status_events",
    metadata,
    _id(),
    _task(index=True),
    _text("old", nullable=True),
    _text("new"),
    _text("reason"),
    _run(),
    _created(),
)

policies = Table(
    "policies",
    metadata,
    _id(),
    _text("line"),
    _digest("weights", nullable=False, index=True),
    _number("step"),
    _digest("parent"),
    _text("path"),
    _text("format"),
    _created(),
    UniqueConstraint("line", "weights"),
)

assessments = Table(
    "assessments",
    metadata,
    _id(),
    _task(),
    _text("line"),
    _digest("policy", nullable=False),
    _number("successes"),
    _number("rollouts"),
    _number("masked"),
    _number("unparsed"),
    Column("temperature", Double, nullable=False),
    _text("image"),
    _text("backend"),
    _text("state"),
    _run(),
    _created(),
    ForeignKeyConstraint(["line", "policy"], ["policies.line", "policies.weights"]),
    Index(None, "task", "line"),
    CheckConstraint("0 <= successes AND successes <= rollouts AND masked >= 0 AND unparsed >= 0", name="counts"),
)

# The latest assessment of each task for each policy line, kept beside it so that lists need no search for it.
task_states = Table(
    "task_states",
    metadata,
    _text("line"),
    _task(index=True),
    Column("assessment", Integer, ForeignKey("assessments.id"), nullable=False),
    _text("state"),
    PrimaryKeyConstraint("line", "task"),
    Index(None, "line", "state"),
)

trajectories = Table(
    "trajectories",
    metadata,
    _id(),
    _digest("blob", nullable=False, index=True),
    _number("row"),
    _digest("task", nullable=False, index=True),
    _text("group_key"),
    _number("member"),
    _text("policy", index=True),
    _text("outcome"),
    _text("reason"),
    Column("solved", Boolean, nullable=False),
    Column("held_out_solved", Boolean),
    _number("tokens"),
    _number("sampled"),
    _number("turns"),
    _digest("end_tree"),
    _text("purpose"),
    _run(),
    _created(),
    Index(None, "purpose", "run"),
)

splits = Table(
    "splits",
    metadata,
    _id(),
    _text("name", unique=True),
    _digest("digest", nullable=False),
    Column("sealed", Boolean, nullable=False),
    _created(),
)

split_keys = Table(
    "split_keys",
    metadata,
    Column("split", Text, ForeignKey("splits.name"), nullable=False),
    _text("key"),
    _text("part"),
    PrimaryKeyConstraint("split", "key"),
)

split_tasks = Table(
    "split_tasks",
    metadata,
    Column("split", Text, ForeignKey("splits.name"), nullable=False),
    _task(index=True),
    _text("part"),
    PrimaryKeyConstraint("split", "task"),
    Index(None, "split", "part"),
)

aliases = Table(
    "aliases",
    metadata,
    _text("name", primary_key=True),
    _digest("digest", nullable=False),
    Column("updated_at", String(32), nullable=False),
)

alias_log = Table(
    "alias_log",
    metadata,
    _id(),
    _text("name", index=True),
    _digest("old"),
    _digest("new", nullable=False),
    _created(),
)

lineage = Table(
    "lineage",
    metadata,
    _text("child"),
    _text("parent", index=True),
    _text("relation"),
    _created(),
    PrimaryKeyConstraint("child", "parent", "relation"),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    _text("action"),
    _text("subject", index=True),
    _json("data"),
    _created(),
    _digest("previous", nullable=False),
    _digest("digest", nullable=False),
)
