from __future__ import annotations

import multiprocessing
import os
import pickle
import sqlite3
import threading
from pathlib import Path

import pytest

from factory.core.errors import Conflict, RegistryError, UserError
from registry.database import Database, DatabaseConfig
from registry.store import Registry
from tests.registry.material import candidate


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://host/name", "sqlite://", "sqlite:///:memory:"])
def test_an_address_that_is_none_is_a_users_mistake(tmp_path: Path, url: str) -> None:
    with pytest.raises(UserError, match="sqlite:///PATH") as caught:
        Registry.open(url, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_database_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    path.write_bytes(b"not a database, but long enough to be read as one" * 100)
    with pytest.raises(RegistryError, match="not a database") as caught:
        Registry.open(f"sqlite:///{path}", tmp_path / "blobs")
    assert "\n" not in str(caught.value)


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    with pytest.raises(RegistryError, match="not a registry"):
        Registry.open(f"sqlite:///{path}", tmp_path / "blobs")


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    database = Database("postgresql://me:secret@nowhere.invalid/name")
    assert database.url.drivername == "postgresql+psycopg"
    assert "secret" not in database.url.render_as_string()


def test_a_transaction_that_fails_leaves_nothing(registry: Registry) -> None:
    with pytest.raises(ZeroDivisionError), registry._database.write() as connection:
        connection.exec_driver_sql("INSERT INTO lineage VALUES ('child', 'parent', 'relation', '')")
        raise ZeroDivisionError
    assert registry.ancestors("child") == []
    with pytest.raises(Conflict), registry._database.write() as connection:
        for _ in range(2):
            connection.exec_driver_sql("INSERT INTO lineage VALUES ('child', 'parent', 'relation', '')")
    assert registry.ancestors("child") == []


def test_a_store_that_stays_locked_says_so_after_bounded_attempts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    config = DatabaseConfig(busy_timeout_s=0.05, attempts=2)
    with Registry.open(url, tmp_path / "blobs", database=config) as registry:
        holder = sqlite3.connect(tmp_path / "registry.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        one = candidate(registry.blobs)
        with pytest.raises(RegistryError, match="locked"):
            registry.register(one)
        assert registry.query() == [], "readers do not wait for a writer"
        holder.execute("ROLLBACK")
        holder.close()
        assert registry.register(one).created


def test_a_writer_waits_for_the_one_before_it(registry: Registry) -> None:
    inside, seen = threading.Event(), []

    def second() -> None:
        inside.wait(10)
        registry.register(candidate(registry.blobs, 2))
        seen.append(registry._database.engine.url)

    thread = threading.Thread(target=second)
    thread.start()
    with registry._database.write() as connection:
        inside.set()
        thread.join(0.3)
        assert thread.is_alive() and not seen
        connection.exec_driver_sql("INSERT INTO lineage VALUES ('child', 'parent', 'relation', '')")
    thread.join(20)
    assert len(registry.query()) == 1


def test_a_registry_pickles_as_its_address(registry: Registry) -> None:
    digest = registry.register(candidate(registry.blobs)).digest
    other = pickle.loads(pickle.dumps(registry))
    assert other.task(digest) == registry.task(digest)
    other.close()


def test_a_forked_child_has_connections_of_its_own(tmp_path: Path) -> None:
    with Registry.open(f"sqlite:///{tmp_path}/registry.db", tmp_path / "blobs") as registry:
        registry.register(candidate(registry.blobs, 1))
        child = os.fork()
        if child == 0:
            try:
                registry.register(candidate(registry.blobs, 2))
                os._exit(0)
            finally:
                os._exit(1)
        registry.register(candidate(registry.blobs, 3))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(registry.query()) == 3
        assert registry.verify().problems == ()


def _open(url: str, blobs: Path, ready: object) -> None:
    ready.wait(30)  # type: ignore[attr-defined]
    Registry.open(url, blobs).close()


def test_processes_that_open_a_new_registry_at_once_migrate_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    url = f"sqlite:///{tmp_path}/registry.db"
    workers = [context.Process(target=_open, args=(url, tmp_path / "blobs", barrier)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with Registry.open(url, tmp_path / "blobs") as registry:
        assert len(registry.excluded()) == 12
