"""The schema's version: is it this one, can it be upgraded, is it newer than this envfactory.

Alembic is imported only when there is something to migrate: opening a current registry is cheap.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from factory.core.errors import RegistryError, UserError
from registry.access import Access
from registry.database import Database

REVISIONS = ("r0001", "r0002", "r0003", "r0004", "r0005")
"""Every revision under `migrations/versions`, oldest first; the last one is what this code reads and writes."""


def prepare(database: Database, *, upgrade: bool | None = None) -> None:
    """Make the schema current, or refuse.

    `upgrade=None` creates an empty database's schema anywhere and upgrades an older one only where
    the database is embedded: a shared PostgreSQL is upgraded on purpose, with `upgrade=True`.
    Raises RegistryError when the schema is newer, or older and not to be upgraded; UserError when there is none and
    the database was not opened to make one, or it is older and can only be read.
    """
    with database.read() as connection:
        found = revision(connection)
    if found == REVISIONS[-1]:
        return
    _refuse_newer(database, found)
    address = database.url.render_as_string()
    if found is None and database.access is not Access.CREATE:
        raise UserError("registry", address, "a database with a registry in it: `factory nightly` makes one")
    if database.read_only:
        raise UserError("registry", address, f"schema {REVISIONS[-1]}; its {found} is upgraded where it can be written")
    if not (database.embedded if upgrade is None else upgrade) and found is not None:
        raise RegistryError(
            f"the registry at {database.url.render_as_string()} has schema {found}, this envfactory needs {REVISIONS[-1]}: "
            "open it once with Registry.open(url, blobs, upgrade=True)"
        )
    with database.write() as connection:
        found = revision(connection)  # another process may have been faster
        _refuse_newer(database, found)
        if found != REVISIONS[-1]:
            _migrate(connection)


def revision(connection: Connection) -> str | None:
    """The schema's revision, None for a database without one. Raises RegistryError for somebody else's database."""
    names = inspect(connection).get_table_names()
    if "alembic_version" not in names:
        if names:
            raise RegistryError(
                f"the database at {connection.engine.url.render_as_string()} is not a registry: it has other tables"
            )
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    return found[0] if found else None


def _refuse_newer(database: Database, found: str | None) -> None:
    if found is not None and found not in REVISIONS:
        raise RegistryError(
            f"the registry at {database.url.render_as_string()} has schema {found}, newer than this envfactory knows "
            f"({REVISIONS[-1]}): install a newer envfactory"
        )


def _migrate(connection: Connection) -> None:
    from alembic import command

    from registry.migrations import config

    command.upgrade(config(connection), "head")
