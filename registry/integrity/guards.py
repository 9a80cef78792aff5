"""The triggers of the database against those that the migrations install."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from registry.migrations import config

_SQLITE = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
_POSTGRESQL = """
SELECT t.tgname, c.relname, concat_ws(' ', t.tgenabled, t.tgtype, pg_get_expr(t.tgqual, t.tgrelid),
    (SELECT string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)), p.prosrc)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace
"""
"""What a trigger does: whether and when it fires, on which columns, and the text of its function."""

_SCRATCH = "envfactory_guards"

Guards = dict[tuple[str, str], str]
"""(Name, table): what the trigger does."""


def check_guards(connection: Connection, tables: frozenset[str] | None = None) -> Iterator[str]:
    """One line for every trigger that is missing, altered or not of the migrations: on `tables`, or anywhere."""
    found = _guards(connection)
    try:
        due = (
            _installed()
            if connection.dialect.name == "sqlite"
            else _installed_on(str(connection.engine.url.render_as_string(hide_password=False)))
        )
    except DatabaseError as error:
        yield f"triggers: they cannot be compared, for the database lets no schema be made ({str(error.orig).splitlines()[0]})"
        return
    for name, table in sorted({*found, *due}):
        if tables is not None and table not in tables:
            continue
        if (name, table) not in found:
            yield f"trigger {name} on {table}: missing"
        elif (name, table) not in due:
            yield f"trigger {name} on {table}: not one of the registry's"
        elif found[name, table] != due[name, table]:
            yield f"trigger {name} on {table}: altered or disabled"


def _guards(connection: Connection) -> Guards:
    statement = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    return {(row[0], row[1]): row[2] for row in connection.execute(text(statement))}


@cache
def _installed() -> Guards:
    """Of a new SQLite registry in memory."""
    engine = create_engine("sqlite://", poolclass=NullPool)
    with engine.begin() as connection:
        _migrate(connection)
        return _guards(connection)


@cache
def _installed_on(url: str) -> Guards:
    """Of a new registry in a schema of its own on this PostgreSQL, which nobody sees: it is never committed."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection, connection.begin() as transaction:
        connection.execute(text(f"CREATE SCHEMA {_SCRATCH}"))
        connection.execute(text(f"SET LOCAL search_path TO {_SCRATCH}"))
        _migrate(connection)
        found = _guards(connection)
        transaction.rollback()
    return found


def _migrate(connection: Connection) -> None:
    from alembic import command  # as heavy as the rest of the registry

    command.upgrade(config(connection), "head")
