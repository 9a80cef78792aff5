"""Every table of the first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alias_log",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("old", sa.String(length=64), nullable=True),
        sa.Column("new", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alias_log")),
    )
    op.create_index(op.f("ix_alias_log_name"), "alias_log", ["name"], unique=False)
    op.create_table(
        "aliases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_aliases")),
    )
    op.create_table(
        "audit",
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_subject"), "audit", ["subject"], unique=False)
    op.create_table(
        "excluded_repositories",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_excluded_repositories")),
    )
    op.create_table(
        "lineage",
        sa.Column("child", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("relation", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("child", "parent", "relation", name=op.f("pk_lineage")),
    )
    op.create_index(op.f("ix_lineage_parent"), "lineage", ["parent"], unique=False)
    op.create_table(
        "policies",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("weights", sa.String(length=64), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("parent", sa.String(length=64), nullable=True),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policies")),
        sa.UniqueConstraint("line", "weights", name=op.f("uq_policies_line_weights")),
    )
    op.create_index(op.f("ix_policies_weights"), "policies", ["weights"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("flow", sa.Text(), nullable=False),
        sa.Column("date", sa.Text(), nullable=False),
        sa.Column("config", sa.String(length=64), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("finished_at", sa.String(length=32), nullable=True),
        sa.CheckConstraint("state IN ('running', 'finished', 'stopped', 'failed')", name=op.f("ck_runs_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("flow", "date", name=op.f("uq_runs_flow_date")),
    )
    op.create_table(
        "splits",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("sealed", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_splits")),
        sa.UniqueConstraint("name", name=op.f("uq_splits_name")),
    )
    op.create_table(
        "run_events",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_run_events_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_events")),
    )
    op.create_index(op.f("ix_run_events_run"), "run_events", ["run"], unique=False)
    op.create_table(
        "run_stages",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_run_stages_run")),
        sa.PrimaryKeyConstraint("run", "stage", name=op.f("pk_run_stages")),
    )
    op.create_table(
        "split_keys",
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["split"], ["splits.name"], name=op.f("fk_split_keys_split")),
        sa.PrimaryKeyConstraint("split", "key", name=op.f("pk_split_keys")),
    )
    op.create_table(
        "tasks",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("instruction", sa.String(length=64), nullable=False),
        sa.Column("text", sa.String(length=64), nullable=False),
        sa.Column("origin", sa.String(length=64), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.CheckConstraint(
            "status IN ('candidate', 'accepted', 'rejected', 'quarantined', 'withdrawn')", name=op.f("ck_tasks_status")
        ),
        sa.CheckConstraint("length(digest) = 64", name=op.f("ck_tasks_digest")),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_tasks_run")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_tasks")),
    )
    op.create_index(op.f("ix_tasks_kind_name"), "tasks", ["kind", "name"], unique=False)
    op.create_index(op.f("ix_tasks_name"), "tasks", ["name"], unique=False)
    op.create_index(op.f("ix_tasks_status_name"), "tasks", ["status", "name"], unique=False)
    op.create_table(
        "trajectories",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("blob", sa.String(length=64), nullable=False),
        sa.Column("row", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("group_key", sa.Text(), nullable=False),
        sa.Column("member", sa.Integer(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("solved", sa.Boolean(), nullable=False),
        sa.Column("held_out_solved", sa.Boolean(), nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("sampled", sa.Integer(), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("end_tree", sa.String(length=64), nullable=True),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_trajectories_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trajectories")),
    )
    op.create_index(op.f("ix_trajectories_blob"), "trajectories", ["blob"], unique=False)
    op.create_index(op.f("ix_trajectories_policy"), "trajectories", ["policy"], unique=False)
    op.create_index(op.f("ix_trajectories_purpose_run"), "trajectories", ["purpose", "run"], unique=False)
    op.create_index(op.f("ix_trajectories_task"), "trajectories", ["task"], unique=False)
    op.create_table(
        "assessments",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("policy", sa.String(length=64), nullable=False),
        sa.Column("successes", sa.Integer(), nullable=False),
        sa.Column("rollouts", sa.Integer(), nullable=False),
        sa.Column("masked", sa.Integer(), nullable=False),
        sa.Column("unparsed", sa.Integer(), nullable=False),
        sa.Column("temperature", sa.Double(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.CheckConstraint(
            "0 <= successes AND successes <= rollouts AND masked >= 0 AND unparsed >= 0", name=op.f("ck_assessments_counts")
        ),
        sa.ForeignKeyConstraint(
            ["line", "policy"], ["policies.line", "policies.weights"], name=op.f("fk_assessments_line_policy")
        ),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_assessments_run")),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_assessments_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assessments")),
    )
    op.create_index(op.f("ix_assessments_task_line"), "assessments", ["task", "line"], unique=False)
    op.create_table(
        "evidence",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("filter", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_evidence_run")),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_evidence_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evidence")),
    )
    op.create_index(op.f("ix_evidence_filter_passed"), "evidence", ["filter", "passed"], unique=False)
    op.create_index(op.f("ix_evidence_task"), "evidence", ["task"], unique=False)
    op.create_table(
        "origins",
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("generator", sa.Text(), nullable=False),
        sa.Column("generator_version", sa.Text(), nullable=False),
        sa.Column("operator", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("template", sa.Text(), nullable=True),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_origins_run")),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_origins_task")),
        sa.PrimaryKeyConstraint("task", "digest", name=op.f("pk_origins")),
    )
    op.create_index(op.f("ix_origins_source"), "origins", ["source"], unique=False)
    op.create_table(
        "split_tasks",
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["split"], ["splits.name"], name=op.f("fk_split_tasks_split")),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_split_tasks_task")),
        sa.PrimaryKeyConstraint("split", "task", name=op.f("pk_split_tasks")),
    )
    op.create_index(op.f("ix_split_tasks_split_part"), "split_tasks", ["split", "part"], unique=False)
    op.create_index(op.f("ix_split_tasks_task"), "split_tasks", ["task"], unique=False)
    op.create_table(
        "status_events",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("old", sa.Text(), nullable=True),
        sa.Column("new", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_status_events_run")),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_status_events_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_events")),
    )
    op.create_index(op.f("ix_status_events_task"), "status_events", ["task"], unique=False)
    op.create_table(
        "task_families",
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_task_families_task")),
        sa.PrimaryKeyConstraint("task", "family", name=op.f("pk_task_families")),
    )
    op.create_index(op.f("ix_task_families_family"), "task_families", ["family"], unique=False)
    op.create_table(
        "task_keys",
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_task_keys_task")),
        sa.PrimaryKeyConstraint("task", "key", name=op.f("pk_task_keys")),
    )
    op.create_index(op.f("ix_task_keys_key"), "task_keys", ["key"], unique=False)
    op.create_table(
        "task_states",
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("assessment", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["assessment"], ["assessments.id"], name=op.f("fk_task_states_assessment")),
        sa.ForeignKeyConstraint(["task"], ["tasks.digest"], name=op.f("fk_task_states_task")),
        sa.PrimaryKeyConstraint("line", "task", name=op.f("pk_task_states")),
    )
    op.create_index(op.f("ix_task_states_line_state"), "task_states", ["line", "state"], unique=False)
    op.create_index(op.f("ix_task_states_task"), "task_states", ["task"], unique=False)
