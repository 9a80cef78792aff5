"""Alembic migrations of the registry's schema, from its first table."""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config
from sqlalchemy import Connection


def config(connection: Connection) -> Config:
    """Alembic's configuration for `connection`, whose transaction the migrations join."""
    configuration = Config()
    # "%" would start an interpolation in Alembic's configuration.
    configuration.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    configuration.set_main_option("path_separator", "os")
    configuration.attributes["connection"] = connection
    return configuration
