from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from factory.core.assessment import TaskStatus
from factory.core.errors import RegistryError, SplitViolation
from registry.database import Database
from registry.migrations import config
from registry.policies import Edge
from registry.schema import REVISIONS, prepare, revision
from registry.store import Registry
from registry.tables import metadata

Raw = Callable[[str], None]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without any table."""
    if request.param == "sqlite":
        database = Database(f"sqlite:///{tmp_path}/registry.db")
    else:
        database = Database(request.getfixturevalue("cluster").create(f"empty_{tmp_path.name.lower()}".replace("-", "_")))
    yield database
    database.close()


def test_migrating_from_nothing_gives_the_tables_of_the_code(empty: Database) -> None:
    prepare(empty)
    with empty.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
        assert revision(connection) == REVISIONS[-1]


def test_the_revisions_that_the_code_names_are_those_on_disk(empty: Database) -> None:
    with empty.read() as connection:
        script = ScriptDirectory.from_config(config(connection))
        assert tuple(found.revision for found in reversed(list(script.walk_revisions()))) == REVISIONS
        assert script.get_heads() == [REVISIONS[-1]]


def test_constraints_are_named_alike_in_code_and_database(empty: Database) -> None:
    prepare(empty)
    with empty.read() as connection:
        inspector = inspect(connection)
        for table in metadata.sorted_tables:
            checks = {check["name"] for check in inspector.get_check_constraints(table.name)}
            named = {str(check.name) for check in table.constraints if check.__visit_name__ == "check_constraint"}
            assert named <= checks, table.name


def test_an_older_schema_is_upgraded_and_keeps_its_rows(empty: Database, tmp_path: Path) -> None:
    with empty.write() as connection:
        command.upgrade(config(connection), REVISIONS[0])
        connection.execute(text("INSERT INTO lineage VALUES ('child', 'parent', 'relation', '')"))
    url = empty.url.render_as_string(hide_password=False)
    if not empty.embedded:
        with pytest.raises(RegistryError, match="upgrade=True"):
            Registry.open(url, tmp_path / "blobs")
    with Registry.open(url, tmp_path / "blobs", upgrade=None if empty.embedded else True) as registry:
        assert [edge.parent for edge in registry.ancestors("child")] == ["parent"]
        assert "django" in registry.excluded()


def test_an_upgrade_that_fails_leaves_the_old_schema(empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with empty.write() as connection:
        command.upgrade(config(connection), REVISIONS[0])
        # The third revision seeds this table, and cannot seed a name twice.
        connection.execute(text("INSERT INTO excluded_repositories VALUES ('sympy', 'mine', '')"))
    with pytest.raises(RegistryError):
        prepare(empty, upgrade=True)
    with empty.read() as connection:
        assert revision(connection) == REVISIONS[0]
        connection.execute(text("SELECT * FROM audit")).all()
    with empty.write() as connection:
        connection.execute(text("DELETE FROM excluded_repositories"))
    prepare(empty, upgrade=True)


def _old_tasks(empty: Database, keys: dict[str, str], parts: dict[str, str]) -> None:
    """A registry of revision r0003 with a task for each of `keys`, and a sealed split."""
    with empty.write() as connection:
        command.upgrade(config(connection), "r0003")
        for task, key in keys.items():
            values = f"'{task * 64}', 'repository', '{task}', 'candidate', '', '', '', '', ''"
            columns = "digest, kind, name, status, reason, instruction, text, origin, created_at"
            connection.execute(text(f"INSERT INTO tasks ({columns}) VALUES ({values})"))
            connection.execute(text("INSERT INTO task_keys VALUES (:task, :key, 0)"), {"task": task * 64, "key": key})
        connection.execute(
            text("INSERT INTO splits (name, digest, sealed, created_at) VALUES ('main', '', :sealed, '')"), {"sealed": False}
        )
        for task, part in parts.items():
            connection.execute(text("INSERT INTO split_tasks VALUES ('main', :task, :part)"), {"task": task * 64, "part": part})
        connection.execute(text("UPDATE splits SET sealed = :sealed"), {"sealed": True})


def test_an_upgrade_leaves_old_keys_and_adds_canonical_ones(
    empty: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = {
        "a": "repository:zope.interface",
        "b": "repository:zope.interface",
        "c": "repository:plain",
        "d": "repository:My_Project",
        "e": "repository:my.project",
        "f": "repository:django.git",
        "0": "signature:Copy",
        "1": "repository:/",
    }
    # The old guards took these two for two repositories.
    parts = {"a": "holdout-families", "b": "holdout-families", "d": "train", "e": "holdout-families", "c": "train"}
    _old_tasks(empty, keys, parts)
    with empty.write() as connection:
        connection.execute(text("INSERT INTO excluded_repositories VALUES ('our eval', 'ours', '')"))
    prepare(empty, upgrade=True)
    with Registry.open(empty.url.render_as_string(hide_password=False), tmp_path / "blobs") as registry:
        added = {"a": ["repository:zope-interface"], "b": ["repository:zope-interface"], "e": ["repository:my-project"]}
        for task, key in keys.items():
            assert list(registry.keys(task * 64)) == [key, *added.get(task, [])]
        claimed = registry.key_parts("main", ["repository:zope-interface", "repository:my-project", *keys.values()])
        assert claimed["repository:zope-interface"] == claimed["repository:my-project"] == "holdout-families"
        assert claimed["repository:My_Project"] == "train"
        assert registry.check_split("main") == ["the audit trail does not say that it was sealed"]
        assert registry.excluded()["our eval"] == registry.excluded()["our-eval"] == "ours"
        with pytest.raises(SplitViolation):
            registry.add_keys([("c" * 64, "repository:zope-interface")])
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "1 tasks keep 'repository:My_Project' alone: 'repository:my-project' belongs to another part of their split"
    ]


def test_an_accepted_task_of_an_older_schema_stays(empty: Database, tmp_path: Path) -> None:
    _old_tasks(empty, {"a": "repository:plain"}, {"a": "train"})
    with empty.write() as connection:
        connection.execute(text("UPDATE tasks SET status = 'accepted'"))
    prepare(empty, upgrade=True)
    with Registry.open(empty.url.render_as_string(hide_password=False), tmp_path / "blobs") as registry:
        assert registry.status("a" * 64) is TaskStatus.ACCEPTED
        assert registry.keys("a" * 64) == ("repository:plain",)


def test_a_newer_schema_is_refused_in_one_clear_line(registry: Registry, raw: Raw, tmp_path: Path) -> None:
    raw("UPDATE alembic_version SET version_num = 'r9999'")
    url = registry._database.url.render_as_string(hide_password=False)
    with pytest.raises(RegistryError, match="schema r9999, newer than this envfactory knows") as caught:
        Registry.open(url, tmp_path / "blobs")
    assert "\n" not in str(caught.value)


def test_an_upgrade_adopts_the_rows_that_are_there_and_says_how_many(empty: Database, tmp_path: Path) -> None:
    with empty.write() as connection:
        command.upgrade(config(connection), "r0004")
        insertion = "INSERT INTO lineage VALUES (:child, 'parent', 'trained on', '')"
        connection.execute(text(insertion), [{"child": f"child {number}"} for number in range(1001)])
    prepare(empty, upgrade=True)
    with Registry.open(empty.url.render_as_string(hide_password=False), tmp_path / "blobs") as registry:
        assert [entry.action for entry in registry.audit_log()] == ["adopt rows"] * 2
        verified = registry.verify()
        assert (verified.adopted, verified.problems) == ({"lineage": 1001}, ())
        registry.link([Edge("later", "parent", "trained on")])
        assert registry.verify().adopted == {"lineage": 1001}
    with empty.write() as connection:
        connection.execute(text("UPDATE lineage SET parent = 'other' WHERE child = 'child 7'"))
    with Registry.open(empty.url.render_as_string(hide_password=False), tmp_path / "blobs") as registry:
        assert registry.verify().problems == (
            'lineage ["child 7", "other", "trained on"]: not on the audit trail',
            'lineage ["child 7", "parent", "trained on"]: recorded by audit entry 1, and gone',
        )
