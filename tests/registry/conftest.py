"""A registry on SQLite, and the same tests again on a private PostgreSQL where its binaries are installed."""

from __future__ import annotations

import getpass
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from registry.database import Database
from registry.schema import prepare
from registry.store import Registry

_NUMBERS = itertools.count()


class Cluster:
    """A PostgreSQL of its own on a Unix socket in a temporary folder."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.folder = folder
        # PostgreSQL refuses to run as root.
        self._user = "nobody" if os.getuid() == 0 else getpass.getuser()
        account = pwd.getpwnam(self._user)
        os.chown(folder, account.pw_uid, account.pw_gid)
        initialise = [binaries / "initdb", "-D", folder / "data", "-U", "factory", "--auth=trust", "--no-sync", "-E", "UTF8"]
        self._run = {"cwd": folder, "user": account.pw_uid, "group": account.pw_gid, "env": {"LC_ALL": "C.UTF-8"}}
        subprocess.run(initialise, check=True, capture_output=True, **self._run)
        settings = ["listen_addresses=", "fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off"]
        options = [part for setting in settings for part in ("-c", setting)]
        serve = [binaries / "postgres", "-D", folder / "data", "-k", folder, *options]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(serve, stdout=log, stderr=log, **self._run)

    def prepare(self) -> None:
        """Wait until it answers, and make the database that every test's is copied from."""
        self._wait()
        database = Database(self.create("pattern"))
        prepare(database)
        database.close()

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://factory@/{name}?host={self.folder}"

    def create(self, name: str, pattern: str = "template0") -> str:
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {pattern}"))
        engine.dispose()
        return self.url(name)

    def _wait(self) -> None:
        engine = create_engine(self.url("postgres"))
        deadline = time.monotonic() + 60
        while True:
            try:
                engine.connect().close()
                break
            except OperationalError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)
        engine.dispose()

    def stop(self) -> None:
        # "Fast shutdown": it does not wait for connections that a failed test left open.
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


def _binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("psycopg", reason="the PostgreSQL driver is not installed (extra `postgres`)")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server is installed here")
    with tempfile.TemporaryDirectory(prefix="factory-pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        started = Cluster(binaries, Path(folder))
        try:
            started.prepare()
            yield started
        finally:
            started.stop()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite registry that was migrated once; every test starts with a copy."""
    path = tmp_path_factory.mktemp("pattern") / "registry.db"
    database = Database(f"sqlite:///{path}")
    prepare(database)
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()
    return path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path, migrated: Path) -> str:
    """The address of an empty registry."""
    if request.param == "sqlite":
        shutil.copy(migrated, tmp_path / "registry.db")
        return f"sqlite:///{tmp_path}/registry.db"
    started: Cluster = request.getfixturevalue("cluster")
    return started.create(f"registry_{next(_NUMBERS)}", "pattern")


@pytest.fixture
def registry(url: str, tmp_path: Path) -> Iterator[Registry]:
    with Registry.open(url, tmp_path / "blobs") as opened:
        yield opened


@pytest.fixture
def raw(registry: Registry) -> Iterator[Callable[[str], None]]:
    """Runs one SQL statement past the registry's code, as somebody with the database's address could."""
    engine = create_engine(registry._database.url)

    def execute(statement: str) -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)

    yield execute
    engine.dispose()
