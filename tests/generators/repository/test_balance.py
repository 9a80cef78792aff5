"""Selections with quotas, and the difficulty that they use."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.core.errors import UserError
from generators.repository.balance import FARTHEST, BalanceConfig, Features, balanced, band, difficulty, distance

PLAIN = Features(key="a", operator="o", module="m", fail_to_pass=4, distance=2, edit_lines=1)


def test_difficulty_follows_what_makes_a_bug_hard_to_find() -> None:
    assert difficulty(replace(PLAIN, distance=4)) > difficulty(PLAIN)
    assert difficulty(replace(PLAIN, edit_lines=9)) > difficulty(PLAIN)
    assert difficulty(replace(PLAIN, fail_to_pass=40)) < difficulty(PLAIN)
    assert difficulty(replace(PLAIN, fail_to_pass=1)) > difficulty(PLAIN)
    extremes = [
        replace(PLAIN, fail_to_pass=fail, distance=far, edit_lines=size)
        for fail in (1, 1000)
        for far in (1, 99)
        for size in (1, 999)
    ]
    assert all(0 <= difficulty(one) <= 1 for one in extremes)
    assert {band(one) for one in extremes} == {"easy", "middle", "hard"}


def test_a_measured_pass_rate_replaces_the_estimate() -> None:
    assert difficulty(replace(PLAIN, pass_rate=1.0)) == 0
    assert difficulty(replace(PLAIN, pass_rate=0.25)) == 0.75
    assert band(replace(PLAIN, pass_rate=0.0)) == "hard"


ITEMS = st.lists(
    st.builds(
        Features,
        key=st.uuids().map(str),
        operator=st.sampled_from("abcdef"),
        module=st.sampled_from("xyz"),
        fail_to_pass=st.integers(1, 50),
        distance=st.integers(1, 6),
        edit_lines=st.integers(1, 30),
        pass_rate=st.none() | st.floats(0, 1),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(ITEMS, st.integers(0, 30), st.integers(0, 9))
def test_no_group_passes_its_part_and_the_order_does_not_matter(items: list[Features], count: int, seed: int) -> None:
    config = BalanceConfig(operator=0.3, module=0.5)
    chosen = balanced(items, count, config, seed=seed)
    assert len(chosen) == len({one.key for one in chosen}) <= count
    for share, groups in (
        (0.3, Counter(one.operator for one in chosen)),
        (0.5, Counter(one.module for one in chosen)),
    ):
        assert all(held <= math.ceil(share * count) for held in groups.values())
    shuffled = random.Random(1).sample(items, len(items))
    assert balanced(shuffled, count, config, seed=seed) == chosen


def test_rare_groups_are_not_drowned() -> None:
    common = [replace(PLAIN, key=f"c{number}") for number in range(90)]
    rare = [replace(PLAIN, key=f"r{number}", operator=f"rare {number}", module="n") for number in range(10)]
    config = BalanceConfig(operator=0.5, module=1.0, easy=1.0)
    chosen = balanced([*common, *rare], 20, config, seed=1)
    assert Counter(one.operator == "o" for one in chosen) == {True: 10, False: 10}
    assert balanced(common, 20, config, seed=1) != balanced(common, 20, config, seed=2)


def test_quotas_are_kept_even_when_fewer_tasks_come_out() -> None:
    assert len(balanced([replace(PLAIN, key=str(number)) for number in range(50)], 20, BalanceConfig(), seed=1)) == 3


TEXTS = {
    "test_box.py": "def test_room():\n    assert Box(2).room() == 2\n\ndef test_deep():\n    assert outer(1)\n",
    "box.py": (
        "class Box:\n    def __init__(self, size):\n        self.size = checked(size)\n\n"
        "    def room(self):\n        return self.size\n\n"
        "def checked(size):\n    return limit(size)\n\ndef limit(size):\n    return size\n\n"
        "def outer(a):\n    return middle(a)\n\n"
        "def middle(a):\n    return limit(a)\n\ndef lonely():\n    return 1\n"
    ),
    "broken.py": "def f(:\n",
}


@pytest.mark.parametrize(
    ("function", "tests", "expected"),
    [
        ("Box.room", ["test_room"], 1),
        ("checked", ["test_room"], 2),
        ("limit", ["test_room"], 3),
        ("limit", ["test_deep"], 3),
        ("middle", ["test_room", "test_deep"], 2),
        ("lonely", ["test_room"], FARTHEST),
        ("Box.room", ["test_gone"], FARTHEST),
    ],
)
def test_the_distance_is_the_shortest_chain_of_calls(function: str, tests: list[str], expected: int) -> None:
    assert distance(function, tests, TEXTS) == expected


@pytest.mark.parametrize("fields", [{"operator": 0.0}, {"module": 1.5}, {"easy": 0.2, "middle": 0.2, "hard": 0.2}])
def test_wrong_parts_are_refused(fields: dict[str, float]) -> None:
    with pytest.raises(UserError, match=r"repository\.balance"):
        BalanceConfig(**fields)
