from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from factory.core.errors import Conflict, NotFound, SplitViolation, UserError
from registry.store import Registry
from tests.registry.material import candidate

Raw = Callable[[str], None]


def _register(registry: Registry, *keys: tuple[str, ...]) -> list[str]:
    candidates = [candidate(registry.blobs, number, keys=some) for number, some in enumerate(keys)]
    return [registered.digest for registered in registry.register_many(candidates)]


@pytest.fixture
def sealed(registry: Registry) -> dict[str, str]:
    """Digests by nickname in a sealed split: two in train, two in holdouts, one nowhere."""
    names = ["train one", "train two", "composition", "family", "free"]
    keys = (("slots:1", "signature:a"), ("slots:1",), ("slots:2", "signature:b"), ("slots:3",), ("slots:4",))
    digests = dict(zip(names, _register(registry, *keys), strict=True))
    parts = ["train", "train", "holdout-compositions", "holdout-families"]
    registry.seal_split("main", {digests[name]: part for name, part in zip(names, parts, strict=False)})
    return digests


def test_a_sealed_split_reads_back(registry: Registry, sealed: dict[str, str]) -> None:
    split = registry.split("main")
    assert split.parts == {"holdout-compositions": 1, "holdout-families": 1, "train": 2}
    assert registry.part_of("main", sealed["composition"]) == "holdout-compositions"
    assert registry.part_of("main", sealed["free"]) is None
    assert registry.check_split("main") == []
    assert registry.key_parts("main", ["slots:1", "signature:b", "slots:4"]) == {
        "slots:1": "train",
        "signature:b": "holdout-compositions",
    }


def test_sealing_again_is_a_no_op_and_another_assignment_a_conflict(registry: Registry) -> None:
    one, two = _register(registry, ("slots:1",), ("slots:2",))
    first = registry.seal_split("main", {one: "train", two: "holdout-families"})
    assert registry.seal_split("main", {two: "holdout-families", one: "train"}) == first
    with pytest.raises(Conflict, match="another assignment"):
        registry.seal_split("main", {one: "holdout-families", two: "train"})
    assert registry.seal_split("other", {one: "holdout-families", two: "train"}).parts == {"holdout-families": 1, "train": 1}


def test_a_shared_key_in_two_parts_is_named_and_nothing_is_sealed(registry: Registry) -> None:
    one, two = _register(registry, ("slots:1", "signature:a"), ("slots:2", "signature:a"))
    with pytest.raises(SplitViolation, match="'signature:a'"):
        registry.seal_split("main", {one: "train", two: "holdout-families"})
    assert registry.splits() == []


@pytest.mark.parametrize("assignment", [{}, {"0" * 64: ""}])
def test_an_empty_assignment_or_part_is_a_users_mistake(registry: Registry, assignment: dict[str, str]) -> None:
    with pytest.raises(UserError):
        registry.seal_split("main", assignment)


def test_unknown_tasks_and_splits(registry: Registry, sealed: dict[str, str]) -> None:
    with pytest.raises(NotFound):
        registry.seal_split("second", {"0" * 64: "train"})
    with pytest.raises(NotFound):
        registry.assign("main", "0" * 64)
    for call in (registry.split, registry.check_split, lambda name: registry.assign(name, sealed["free"])):
        with pytest.raises(NotFound, match="no split"):
            call("absent")


def test_new_tasks_join_train_only_where_their_keys_allow(registry: Registry, sealed: dict[str, str]) -> None:
    extra = [
        candidate(registry.blobs, 10, keys=("slots:4", "slots:5")),
        candidate(registry.blobs, 11, keys=("slots:9", "slots:3")),
    ]
    joins, barred = (registered.digest for registered in registry.register_many(extra))
    assert registry.assign("main", sealed["free"]) == "train"
    assert registry.assign_many("main", [joins, barred, sealed["family"]]) == {
        joins: "train",
        barred: None,
        sealed["family"]: "holdout-families",
    }
    with pytest.raises(SplitViolation):
        registry.assign("main", barred)
    assert registry.split("main").parts == {"holdout-compositions": 1, "holdout-families": 1, "train": 4}
    assert registry.key_parts("main", ["slots:4", "slots:5", "slots:9"]) == {"slots:4": "train", "slots:5": "train"}


def test_train_may_shrink_but_its_keys_stay_with_it(registry: Registry, sealed: dict[str, str]) -> None:
    assert registry.leave_train("main", [sealed["train one"], sealed["train two"], sealed["free"]]) == 2
    assert "train" not in registry.split("main").parts
    assert registry.key_parts("main", ["slots:1", "signature:a"]) == {"slots:1": "train", "signature:a": "train"}
    with pytest.raises(SplitViolation, match="holdout never changes"):
        registry.leave_train("main", [sealed["family"]])


def test_a_key_found_later_cannot_join_the_two_sides(registry: Registry, sealed: dict[str, str]) -> None:
    registry.add_keys([(sealed["train one"], "cluster:1")])
    assert registry.key_parts("main", ["cluster:1"]) == {"cluster:1": "train"}
    with pytest.raises(SplitViolation):
        registry.add_keys([(sealed["family"], "cluster:1")])
    assert registry.keys(sealed["family"]) == ("slots:3",)


LEAKS = {
    "a holdout's task into train as well": "INSERT INTO split_tasks VALUES ('main', '{family}', 'train')",
    "a train task into the holdout as well": "INSERT INTO split_tasks VALUES ('main', '{train one}', 'holdout-families')",
    "a new task into a sealed holdout": "INSERT INTO split_tasks VALUES ('main', '{free}', 'holdout-families')",
    "a task to another part": "UPDATE split_tasks SET part = 'train' WHERE part <> 'train'",
    "a task out of a holdout": "DELETE FROM split_tasks WHERE part = 'holdout-families'",
    "a key to another part": "UPDATE split_keys SET part = 'train'",
    "a key away": "DELETE FROM split_keys WHERE key = 'slots:3'",
    "a key in two parts": "INSERT INTO split_keys VALUES ('main', 'slots:3', 'train')",
    "a task's key away": "DELETE FROM task_keys",
    "a key of the other side": "INSERT INTO task_keys VALUES ('{train one}', 'slots:3', 9)",
    "the seal off": "UPDATE splits SET sealed = false",
    "the split away": "DELETE FROM splits",
}


@pytest.mark.parametrize("name", LEAKS)
def test_the_database_itself_refuses_a_leak(registry: Registry, sealed: dict[str, str], raw: Raw, name: str) -> None:
    before = registry.split("main")
    with pytest.raises(IntegrityError):
        raw(LEAKS[name].format(**sealed))
    assert registry.split("main") == before
    assert registry.part_of("main", sealed["family"]) == "holdout-families"
    assert registry.check_split("main") == []


@pytest.mark.parametrize("name", [name for name, statement in LEAKS.items() if statement.startswith("INSERT")])
def test_replacing_is_no_way_around(registry: Registry, sealed: dict[str, str], raw: Raw, name: str) -> None:
    if not registry._database.embedded:
        pytest.skip("INSERT OR REPLACE is SQLite's")
    with pytest.raises(IntegrityError):
        raw(LEAKS[name].format(**sealed).replace("INSERT INTO", "INSERT OR REPLACE INTO"))
    assert registry.check_split("main") == []


def test_a_task_inserted_past_the_code_claims_its_keys_all_the_same(
    registry: Registry, sealed: dict[str, str], raw: Raw
) -> None:
    raw(f"INSERT INTO split_tasks VALUES ('main', '{sealed['free']}', 'train')")
    assert registry.key_parts("main", ["slots:4"]) == {"slots:4": "train"}


def test_emptying_a_table_is_refused(registry: Registry, sealed: dict[str, str], raw: Raw) -> None:
    if registry._database.embedded:
        pytest.skip("TRUNCATE is PostgreSQL's")
    for table in ("split_keys", "split_tasks", "splits", "task_keys", "tasks", "audit"):
        with pytest.raises(IntegrityError, match="never emptied"):
            raw(f"TRUNCATE {table} CASCADE")


@settings(max_examples=25, deadline=None)
@given(
    keys=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True), min_size=1, max_size=8),
    parts=st.data(),
)
def test_whatever_is_tried_no_key_is_ever_on_two_sides(
    tmp_path_factory: pytest.TempPathFactory, keys: list[list[int]], parts: st.DataObject
) -> None:
    folder: Path = tmp_path_factory.mktemp("split")
    with Registry.open(f"sqlite:///{folder}/registry.db", folder / "blobs") as registry:
        digests = _register(registry, *(tuple(f"k:{key}" for key in some) for some in keys))
        chosen = [parts.draw(st.sampled_from(["train", "holdout"])) for _ in digests]
        half = max(1, len(digests) // 2)
        consistent = all(chosen[i] == chosen[j] or not set(keys[i]) & set(keys[j]) for i in range(half) for j in range(half))
        try:
            registry.seal_split("main", dict(zip(digests[:half], chosen, strict=False)))
        except SplitViolation:
            assert not consistent
            return
        assert consistent
        registry.assign_many("main", digests)
        sides: dict[int, set[str]] = {}
        for digest, some in zip(digests, keys, strict=True):
            part = registry.part_of("main", digest)
            for key in some:
                sides.setdefault(key, set()).update({part} if part else set())
        assert all(len(side) <= 1 for side in sides.values())
