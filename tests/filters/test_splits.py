"""Splits: what is held out, and that nothing leaks."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from factory.core.blobs import MemoryBlobs
from factory.core.digest import digest_of
from factory.core.errors import UserError
from factory.core.task import repository_key
from filters.contamination.duplicates import DuplicateIndex
from filters.splits import COMPOSITIONS, FAMILIES, TRAIN, Member, SplitConfig, components, plan_split
from generators.terminal.generator import TerminalGenerator
from registry.store import Registry
from tests.filters.tasks import with_keys

KEYS = st.lists(st.sampled_from([f"signature:k+{number}" for number in range(12)]), min_size=1, max_size=3)
SKILLS = st.lists(st.sampled_from(["copy", "make", "sort", "link"]), min_size=1, max_size=2)


@st.composite
def members(draw: st.DrawFn) -> list[Member]:
    pairs = draw(st.lists(st.tuples(KEYS, SKILLS), min_size=1, max_size=25))
    return [Member(task=digest_of(number), keys=tuple(k), families=tuple(f)) for number, (k, f) in enumerate(pairs)]


def member(number: int, keys: str, families: str) -> Member:
    return Member(task=digest_of(number), keys=tuple(keys.split()), families=tuple(families.split()))


def pools(each: int = 10) -> list[Member]:
    """Eight pools of `each` tasks; every skill occurs in four of them."""
    skills = ["copy", "make", "sort", "rename"]
    return [
        member(
            pool * 100 + number, f"signature:{pool}+{number % 3} slots:{pool}", f"{skills[pool % 4]} {skills[(pool + 1) % 4]}"
        )
        for pool in range(8)
        for number in range(each)
    ]


@given(members())
def test_components_agree_with_scipy(found: list[Member]) -> None:
    """Tasks and keys as the nodes of one graph."""
    keys = sorted({key for one in found for key in one.keys})
    edges = [(number, len(found) + keys.index(key)) for number, one in enumerate(found) for key in one.keys]
    size = len(found) + len(keys)
    rows, columns = np.array(edges).T
    graph = coo_array((np.ones(len(edges)), (rows, columns)), shape=(size, size))
    count, labels = connected_components(graph, directed=False)
    ours = components(found)
    assert len(ours) == count
    position = {one.task: number for number, one in enumerate(found)}
    for component in ours:
        assert len({int(labels[position[one.task]]) for one in component}) == 1


@given(members(), st.integers(0, 10), st.randoms())
def test_no_key_is_in_two_parts_and_order_does_not_matter(found: list[Member], wanted: int, rng: random.Random) -> None:
    config = SplitConfig(compositions=wanted, apart_families=("link",))
    plan = plan_split(found, config)
    owners: dict[str, set[str]] = {}
    for one in found:
        for key in one.keys:
            owners.setdefault(key, set()).add(plan.parts[one.task])
    assert all(len(parts) == 1 for parts in owners.values())
    assert plan.parts.keys() == {one.task for one in found}
    trained = {family for one in found if plan.parts[one.task] == TRAIN for family in one.families}
    held = {family for one in found if plan.parts[one.task] == COMPOSITIONS for family in one.families}
    assert held <= trained and "link" not in trained | held
    assert plan.missing == max(0, wanted - plan.sizes.get(COMPOSITIONS, 0))
    shuffled = rng.sample(found, len(found))
    assert plan_split(shuffled, config) == plan


@pytest.mark.parametrize(("wanted", "expected"), [(0, 0), (10, 10), (11, 20), (0.25, 20), (0.5, 40)])
def test_compositions_are_whole_pools_and_no_more_than_needed(wanted: float, expected: int) -> None:
    assert plan_split(pools(), SplitConfig(compositions=wanted)).sizes.get(COMPOSITIONS, 0) == expected


def test_what_cannot_be_reached_is_said() -> None:
    plan = plan_split(pools(), SplitConfig(compositions=75))
    assert plan.sizes[COMPOSITIONS] + plan.missing == 75 and plan.missing > 0 and plan.sizes[TRAIN] >= 20


def test_seeds_choose_different_pools() -> None:
    plans = [plan_split(pools(), SplitConfig(compositions=20, seed=seed)).parts for seed in (1, 1, 2, 3)]
    assert plans[0] == plans[1] and len({tuple(sorted(plan.items())) for plan in plans}) == 3


def test_families_and_repositories_set_apart_take_their_components() -> None:
    found = [
        member(1, "signature:link+copy slots:apart", "link copy"),
        member(2, "signature:copy+copy slots:apart", "copy"),
        member(3, "signature:copy slots:1", "copy"),
        member(4, "repository:schedule", "negate"),
        member(5, "repository:parse", "negate"),
    ]
    plan = plan_split(found, SplitConfig(compositions=0, apart_families=("link",), apart_repositories=("parse",)))
    assert [plan.parts[one.task] for one in found] == [FAMILIES, FAMILIES, TRAIN, TRAIN, FAMILIES]


@pytest.mark.parametrize("spelling", ["zope.interface", "Zope_Interface", "zope-interface.git", "ｚｏｐｅ-interface/"])
def test_repositories_are_set_apart_by_any_spelling(spelling: str) -> None:
    found = [member(1, repository_key("zope.interface"), "negate"), member(2, "repository:zope", "negate")]
    config = SplitConfig(compositions=0, apart_repositories=(spelling,))
    assert plan_split(found, config).parts == {digest_of(1): FAMILIES, digest_of(2): TRAIN}


def test_repositories_are_never_a_holdout_of_compositions() -> None:
    found = [member(number, f"repository:{number}", "negate") for number in range(10)]
    plan = plan_split(found, SplitConfig(compositions=3))
    assert plan.sizes == {TRAIN: 10} and plan.missing == 3


def test_near_duplicates_stand_on_one_side() -> None:
    found = [one for one in pools() if "slots:0" in one.keys or "slots:1" in one.keys]
    bridged = [*found, member(9999, "slots:0 cluster:x", "copy"), member(9998, "slots:1 cluster:x", "make")]
    assert len(components(found)) == 2 and len(components(bridged)) == 1


def test_what_joins_a_sealed_split_trains_or_stays_out() -> None:
    sealed = {"slots:0": TRAIN, "slots:1": COMPOSITIONS, "slots:2": FAMILIES}
    found = [
        member(1, "slots:0", "copy"),
        member(2, "slots:1", "copy"),
        member(3, "slots:0 slots:1", "copy"),
        member(4, "slots:9", "copy"),
        member(5, "slots:8", "link"),
        member(6, "slots:2", "copy"),
        member(7, "repository:parse", "negate"),
    ]
    config = SplitConfig(compositions=3, apart_families=("link",), apart_repositories=("parse",))
    plan = plan_split(found, config, sealed=sealed)
    assert plan.parts == {digest_of(1): TRAIN, digest_of(4): TRAIN}
    assert "slots:1 belongs to holdout-compositions" in plan.unplaced[digest_of(3)]
    assert set(plan.unplaced) == {digest_of(number) for number in (2, 3, 5, 6, 7)}


def test_the_registry_seals_a_plan_and_grows_as_planned(tmp_path: Path) -> None:
    """Real tasks, the real database: the plan passes its triggers, and later tasks join just as planned."""
    config = SplitConfig(compositions=40, apart_families=("store", "link"))
    with Registry.open(f"sqlite:///{tmp_path}/registry.db", tmp_path / "blobs") as registry:
        index = DuplicateIndex()

        def registered(seed: int) -> list[Member]:
            found = list(TerminalGenerator().generate(registry.blobs, seed=seed, start=0, count=150))
            placed = [Member.of(one, index.add(one.task.digest, one.text).keys) for one in found]
            registry.register_many([with_keys(one, place.keys) for one, place in zip(found, placed, strict=True)])
            return placed

        first = registered(1)
        plan = plan_split(first, config)
        assert plan.sizes[COMPOSITIONS] >= 40 and plan.sizes[FAMILIES] > 0 and plan.missing == 0
        registry.seal_split("nightly", plan.parts)
        assert registry.check_split("nightly") == []
        later = registered(2)
        sealed = registry.key_parts("nightly", [key for one in later for key in one.keys])
        known = set(plan.parts)
        growth = plan_split([one for one in later if one.task not in known], config, sealed=sealed)
        assert growth.parts and growth.unplaced
        joined = registry.assign_many("nightly", growth.parts)
        assert set(joined.values()) == {TRAIN}
        assert registry.split("nightly").parts[COMPOSITIONS] == plan.sizes[COMPOSITIONS]
        assert registry.check_split("nightly") == []


def test_wrong_settings_and_tasks_without_keys() -> None:
    for wrong in (-0.1, 1.5):
        with pytest.raises(UserError, match="compositions"):
            SplitConfig(compositions=wrong)
    with pytest.raises(UserError, match="split key"):
        plan_split([member(1, "", "copy")])


def test_members_of_candidates() -> None:
    [one] = TerminalGenerator().generate(MemoryBlobs(), seed=1, start=0, count=1)
    found = Member.of(one, ["cluster:x"])
    assert found.task == one.task.digest and found.keys == (*one.keys.keys, "cluster:x") and found.families == one.families


def test_a_component_with_a_single_skill_trains() -> None:
    """Holding out the plain form of a skill would make its compositions new in more than their composition."""
    alone = [member(1, "signature:copy slots:0", "copy"), member(2, "signature:copy+sort slots:0", "copy sort")]
    pairs = [member(3, "signature:sort+copy slots:1", "copy sort")]
    plan = plan_split([*alone, *pairs], SplitConfig(compositions=1))
    assert plan.parts == {alone[0].task: "train", alone[1].task: "train", pairs[0].task: "holdout-compositions"}
