from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from factory.core.assessment import TaskStatus
from factory.core.errors import RegistryError
from registry.store import Registry
from tests.registry.material import POLICY, candidate

Raw = Callable[[str], None]


@pytest.fixture
def acts(registry: Registry) -> str:
    """A registry with a few acts on its trail; the digest of its one task."""
    digest = registry.register(candidate(registry.blobs)).digest
    registry.add_policy(POLICY, path="/p", format="tiny")
    registry.set_status(digest, TaskStatus.REJECTED, "naïve")
    registry.alias_set("best", digest, expected=None)
    registry.seal_split("main", {digest: "train"})
    return digest


def test_acts_are_on_the_trail(registry: Registry, acts: str) -> None:
    entries = registry.audit_log()
    assert [entry.action for entry in reversed(entries)] == ["register", "add policy", "set status", "move alias", "seal split"]
    assert [entry.action for entry in registry.audit_log(subject=acts)] == ["set status", "register"]
    assert registry.audit_log(action="set status")[0].data["reason"] == "naïve"
    assert len(registry.audit_log(limit=2)) == 2
    assert registry.verify_audit() == 5


def test_the_chain_is_sha256_over_canonical_json(registry: Registry, acts: str) -> None:
    previous = "0" * 64
    for entry in reversed(registry.audit_log()):
        content = {
            "action": entry.action,
            "at": entry.created_at,
            "data": entry.data,
            "previous": previous,
            "seq": entry.seq,
            "subject": entry.subject,
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert entry.digest == previous
    assert registry.audit_head() == previous


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET subject = 'other' WHERE seq = 2",
        "UPDATE audit SET digest = previous",
        "DELETE FROM audit WHERE seq = 5",
        "DELETE FROM audit",
        "INSERT INTO audit SELECT 7, action, subject, data, created_at, digest, digest FROM audit WHERE seq = 5",
        "INSERT INTO audit SELECT 6, action, subject, data, created_at, previous, digest FROM audit WHERE seq = 5",
    ],
)
def test_the_database_refuses_to_change_the_trail(registry: Registry, acts: str, raw: Raw, statement: str) -> None:
    with pytest.raises(IntegrityError, match="audit"):
        raw(statement)
    assert registry.verify_audit() == 5


def test_replacing_an_entry_is_refused(registry: Registry, acts: str, raw: Raw) -> None:
    if not registry._database.embedded:
        pytest.skip("INSERT OR REPLACE is SQLite's")
    with pytest.raises(IntegrityError, match="next link"):
        raw("INSERT OR REPLACE INTO audit SELECT 3, action, 'x', data, created_at, previous, digest FROM audit WHERE seq = 3")
    assert registry.verify_audit() == 5


def _without_guards(path: Path, statement: str) -> None:
    """What somebody with the file itself can do: drop the triggers, then write."""
    connection = sqlite3.connect(path)
    names = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'")
    ]
    for name in names:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("UPDATE audit SET data = '{}' WHERE seq = 3", 3),
        ("UPDATE audit SET created_at = '2020-01-01T00:00:00.000+00:00' WHERE seq = 1", 1),
        ("DELETE FROM audit WHERE seq = 2", 2),
        ("UPDATE audit SET seq = 9 WHERE seq = 5", 5),
    ],
)
def test_tampering_past_the_guards_is_seen(tmp_path: Path, statement: str, broken: int) -> None:
    with Registry.open(f"sqlite:///{tmp_path}/registry.db", tmp_path / "blobs") as registry:
        registry.register_many([candidate(registry.blobs, number) for number in range(5)])
        head = registry.audit_head()
        assert registry.verify_audit(head) == 5
        _without_guards(tmp_path / "registry.db", statement)
        with pytest.raises(RegistryError, match=f"broken at entry {broken} "):
            registry.verify_audit()


def test_a_trail_cut_short_is_seen_with_a_noted_head(tmp_path: Path) -> None:
    with Registry.open(f"sqlite:///{tmp_path}/registry.db", tmp_path / "blobs") as registry:
        registry.register_many([candidate(registry.blobs, number) for number in range(5)])
        head = registry.audit_head()
        registry.register(candidate(registry.blobs, 5))
        assert registry.verify_audit(head) == 6
        _without_guards(tmp_path / "registry.db", "DELETE FROM audit WHERE seq >= 4")
        assert registry.verify_audit() == 3
        with pytest.raises(RegistryError, match="entries are missing"):
            registry.verify_audit(head)
