"""The audit trail covers rows (see `registry.covered`): those that are there already are adopted as they stand.

Entries `adopt rows` hold their digests. What was done to them before is seen by none of these digests; what is done from
now on is. No table changes.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import select

from registry import audit
from registry.covered import COVERED, covering

revision = "r0005"
down_revision = "r0004"
branch_labels = None
depends_on = None

_ROWS = 1000
"""Rows of one entry."""


def upgrade() -> None:
    connection = op.get_bind()
    for table, names in COVERED.items():
        keys = list(table.primary_key.columns)
        columns = {column.name: column for column in (*keys, *(table.c[name] for name in names))}
        found = connection.execute(select(*columns.values()).order_by(*keys)).mappings().all()
        for start in range(0, len(found), _ROWS):
            rows = covering({table: found[start : start + _ROWS]})
            audit.record(connection, [("adopt rows", table.name, {"rows": rows})])
