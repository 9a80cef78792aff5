"""Run by Alembic: migrate the connection that `registry.migrations.config` was given."""

from __future__ import annotations

from alembic import context

from registry.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
