"""The database: one engine for SQLite and PostgreSQL, short transactions, one writer at a time.

Every write transaction holds the store's one writer lock from its start (SQLite: BEGIN IMMEDIATE on
a write-ahead log; PostgreSQL: an advisory lock of the transaction). What a writer reads before it
writes is therefore current, which the audit chain and the splits rely on. Readers never wait.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Text,
    create_engine,
    insert,
    make_url,
    text,
    type_coerce,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, NoSuchModuleError, OperationalError
from sqlalchemy.schema import Table

from factory.core.errors import Conflict, Excluded, RegistryError, SplitViolation, UserError
from registry.access import DATABASE_DEFAULTS, Access, DatabaseConfig
from registry.sqlite import sqlite_engine

logger = logging.getLogger(__name__)

_WRITER_LOCK = 0x656E7666
"""Key of the advisory lock that PostgreSQL writers take: `envf`."""

_GUARDS = {"excluded repository": Excluded, "split violation": SplitViolation}
"""How the triggers' messages begin, and the error that each becomes."""


def now() -> str:
    """The present instant, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def plain(value: str) -> str:
    """`value` as every database stores it: NUL and lone surrogates replaced."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


class Database:
    """Connections to one registry's database. Safe for threads; a forked child gets connections of its own."""

    def __init__(self, url: str, config: DatabaseConfig = DATABASE_DEFAULTS, access: Access = Access.CREATE) -> None:
        """Raises UserError for an address that is none, or at which `access` is not to be had."""
        self.url = parse_url(url)
        self.config = config
        self.access = access
        self.read_only = False
        if self.embedded:
            self.engine, self.read_only = sqlite_engine(self.url, config, access)
        else:
            self.engine = _postgresql_engine(self.url)
        self._process = os.getpid()

    @property
    def embedded(self) -> bool:
        """Whether this is SQLite."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one consistent state. Raises RegistryError when the database fails."""
        with _faults(), self._connect() as connection:
            if not self.embedded:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The one write transaction of the moment: all of it is committed, or nothing.

        Raises Conflict, SplitViolation or Excluded when a constraint or trigger refuses, RegistryError
        when the store stays locked for `attempts` waits or the database fails, UserError when it was opened to be read.
        """
        if self.read_only:
            raise UserError(
                "registry", self.url.render_as_string(), "a database that can be written; this one can only be read"
            )
        with _faults(), self._writer() as connection:
            yield connection

    @contextmanager
    def _writer(self) -> Iterator[Connection]:
        with self._connect().execution_options(envfactory_writer=True) as connection:
            for attempt in range(1, self.config.attempts + 1):
                try:
                    transaction = connection.begin()
                    break
                except OperationalError as error:
                    if "locked" not in str(error.orig) or attempt == self.config.attempts:
                        raise
                    logger.warning("registry is locked by another writer, attempt %d of %d", attempt, self.config.attempts)
            with transaction:
                if not self.embedded:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER_LOCK})
                yield connection

    def _connect(self) -> Connection:
        if self._process != os.getpid():
            # A forked child must leave its parent's connections alone.
            self.engine.dispose(close=False)
            self._process = os.getpid()
        return self.engine.connect()

    def close(self) -> None:
        """Close every connection of this process."""
        self.engine.dispose(close=self._process == os.getpid())


def parse_url(url: str) -> URL:
    """Read a database URL. Raises UserError unless it is SQLite on a file, or PostgreSQL."""
    expected = "sqlite:///PATH or postgresql+psycopg://USER@HOST/NAME"
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UserError("registry", url, expected) from None
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if not url.isprintable():
        raise UserError("registry", url, expected)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise UserError("registry", parsed.render_as_string(), expected)
    return parsed.set(drivername="sqlite")


def _postgresql_engine(url: URL) -> Engine:
    try:
        return create_engine(url, pool_size=4, max_overflow=8, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise UserError(
            "registry", url.render_as_string(), "the PostgreSQL driver: pip install 'envfactory[postgres]'"
        ) from None


@contextmanager
def _faults() -> Iterator[None]:
    """The boundary between the driver's errors and the factory's."""
    try:
        yield
    except IntegrityError as error:
        message = str(error.orig).splitlines()[0]
        for start, kind in _GUARDS.items():
            if message.startswith(start):
                raise kind(message) from error
        raise Conflict(f"the registry refused the write: {message}") from error
    except DatabaseError as error:
        message = str(error.orig).strip().splitlines()[0]
        raise RegistryError(f"the registry's database failed: {message}") from error


def upsert(connection: Connection, table: Table, rows: list[dict[str, Any]], *, keys: tuple[str, ...]) -> None:
    """Insert `rows`; those whose `keys` are taken replace the columns outside the keys (upsert)."""
    if not rows:
        return
    builder = sqlite_insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = builder(table)
    others = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=list(keys), set_=others), rows)


def insert_rows(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert `rows` in one go; none is fine."""
    if rows:
        connection.execute(insert(table), rows)


def raw_columns(table: Table) -> list[ColumnElement[Any]]:
    """The columns of a table as the driver gives them, for checks: what somebody wrote past the registry may be of any type."""
    return [type_coerce(column, Text).label(column.name) for column in table.c]


def json_of(value: Any) -> Any:
    """What stands in a raw column of JSON; None where it is none."""
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return None


def chunks(values: list[str], size: int = 500) -> Iterator[list[str]]:
    """`values` in pieces that fit one statement's parameters."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


_PREFIX = re.compile(r"[0-9a-f]{8,63}")


def is_prefix(reference: str) -> bool:
    """Whether `reference` can be the beginning of a digest: 8 to 63 hexadecimal digits."""
    return _PREFIX.fullmatch(reference) is not None
