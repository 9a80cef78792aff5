"""The embedded database: one file with a write-ahead log, and the same where nothing can be written."""

from __future__ import annotations

import os
import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event

from factory.core.errors import UserError
from registry.access import Access, DatabaseConfig


def sqlite_engine(url: URL, config: DatabaseConfig, access: Access) -> tuple[Engine, bool]:
    """The engine, and whether it can only read. Raises UserError when `access` is not to be had."""
    path = Path(str(url.database))
    writable = _check(url, path, access)
    options: dict[str, Any] = {"connect_args": {"timeout": config.busy_timeout_s}}
    if not writable:
        options = {"creator": partial(_open_read_only, path, config.busy_timeout_s)}
        _read_only_address(path)  # a mistake is told before anything connects
    engine = create_engine(url, pool_size=4, max_overflow=-1, **options)
    event.listen(engine, "connect", _settings(config, writable))
    event.listen(engine, "begin", _begin)
    return engine, not writable


def _check(url: URL, path: Path, access: Access) -> bool:
    """Whether the database can be written. Raises UserError."""
    address = url.render_as_string()
    if access is Access.CREATE and not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError("registry", address, f"a place where a database can be made ({error.strerror})") from None
    elif not path.is_file():
        raise UserError("registry", address, "the address of a registry that exists: `factory nightly` makes one")
    writable = os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))
    if not writable and access is not Access.READ:
        raise UserError("registry", address, "a database that can be written; this one can only be read here")
    return writable


def _read_only_address(path: Path) -> str:
    """A URI by which SQLite reads the file without writing beside it. Raises UserError where that would miss commits."""
    log, index = (path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm"))
    immutable = not log.exists() or log.stat().st_size == 0
    if not immutable and not index.exists() and not os.access(path.parent, os.W_OK):
        expected = f"a copy with {index.name}, or one in a folder that can be written: {log.name} has commits to read"
        raise UserError("registry", str(path), expected)
    # Without a log there is nothing to share with a writer, and SQLite could not make the files of one.
    return f"file:{quote(str(path.resolve()))}?mode=ro{'&immutable=1' if immutable else ''}"


def _open_read_only(path: Path, timeout_s: float) -> sqlite3.Connection:
    return sqlite3.connect(_read_only_address(path), uri=True, timeout=timeout_s, check_same_thread=False)


def _settings(config: DatabaseConfig, writable: bool) -> Any:
    def connect(connection: Any, _record: object) -> None:
        # The driver's own implicit transactions would not cover DDL and could not be IMMEDIATE.
        connection.isolation_level = None
        if writable:
            _use_write_ahead_log(connection, config.busy_timeout_s)
            connection.execute(f"PRAGMA synchronous = {'FULL' if config.durable else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA recursive_triggers = ON")
        connection.execute("PRAGMA temp_store = MEMORY")

    return connect


def _use_write_ahead_log(connection: Any, timeout_s: float) -> None:
    """Switch a new file to the write-ahead log. SQLite does not wait for a lock here, so two first openers must."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin(connection: Connection) -> None:
    writer = connection.get_execution_options().get("envfactory_writer", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")
