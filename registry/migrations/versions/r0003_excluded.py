"""The repositories that SWE-bench is made of: training on them would contaminate every score on it.

The twelve are those of Jimenez et al. 2024 (SWE-bench, table of repositories). A repository's key is
compared in lower case with `-` for `_` and `.`, with or without an owner in front.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"
branch_labels = None
depends_on = None

SWE_BENCH = (
    "astropy",
    "django",
    "flask",
    "matplotlib",
    "pylint",
    "pytest",
    "requests",
    "scikit-learn",
    "seaborn",
    "sphinx",
    "sympy",
    "xarray",
)


def upgrade() -> None:
    table = sa.table("excluded_repositories", sa.column("name"), sa.column("reason"), sa.column("created_at"))
    instant = "2026-11-30T00:00:00.000+00:00"
    op.bulk_insert(table, [{"name": name, "reason": "SWE-bench", "created_at": instant} for name in SWE_BENCH])
