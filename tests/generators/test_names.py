"""Names and signatures: disjoint pools, stable pools, weights, and what demonstrations may show."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.errors import GeneratorError, UserError
from generators.names import ROOMS, SYLLABLES, Names, partition
from generators.signatures import SignatureSpace

TABLE = ("make", "copy", "sort", "link")


def space(**changes: object) -> SignatureSpace:
    settings: dict[str, object] = {
        "room": "terminal",
        "table": TABLE,
        "families": ("make", "copy", "sort"),
        "apart": ("link",),
        "apart_percent": 20,
        "depth_weights": (1, 3),
        "pools": 4,
    }
    return SignatureSpace(**{**settings, **changes})  # type: ignore[arg-type]


@given(pools=st.integers(1, 16))
def test_no_name_stands_in_two_pools_of_any_room(pools: int) -> None:
    seen = Counter(name for room in ROOMS for kind in partition(room, pools) for pool in kind for name in pool)
    assert set(seen.values()) == {1}
    assert all(re.fullmatch(r"[bdfghklmnprstvz][aeiou][bdfghklmnprstvz][aeiou]", name) for name in seen)
    assert len(seen) > 5_600 and len(set(SYLLABLES)) == 75


def test_pools_are_large_enough_for_a_task() -> None:
    for room in ROOMS:
        shared, reserved = partition(room, 8)
        assert min(map(len, shared)) > 200
        assert min(map(len, reserved)) > 25


def test_fresh_names_never_repeat_and_words_avoid_them() -> None:
    pool = tuple("abcdefghij")
    names = Names(pool, random.Random(0))
    fresh = [names.fresh() for _ in range(5)]
    assert len(set(fresh)) == 5
    assert {names.word() for _ in range(200)} == set(pool) - set(fresh)
    fork = names.forked(random.Random(1))
    assert {fork.word() for _ in range(200)} == set(pool) - set(fresh)


def test_a_pool_that_runs_out_is_an_error_and_no_endless_search() -> None:
    names = Names(tuple("abcdefghij"), random.Random(0))
    with pytest.raises(GeneratorError, match="10 names"):
        for _ in range(10):
            names.fresh()


def test_signatures_are_ordered_and_weighted() -> None:
    weights = {str(signature): weight for signature, weight in space().weighted}
    total = sum(weights.values())
    assert {"make+copy", "copy+make", "link", "link+make", "make+link"} <= weights.keys()
    assert "make+make" not in weights
    assert len(weights) == 3 + 6 + 1 + 6
    assert sum(weight for text, weight in weights.items() if "link" in text) / total == pytest.approx(0.2, abs=1e-4)
    assert sum(weight for text, weight in weights.items() if "+" in text) / total == pytest.approx(0.75, abs=1e-4)


def test_a_family_set_apart_brings_its_own_names() -> None:
    by_text = {str(signature): signature for signature, _ in space().weighted}
    assert by_text["make+link"].keys == ("signature:make+link", "slots:terminal-apart-link")
    assert by_text["make+link"].names == partition("terminal", 4)[1][TABLE.index("link")]
    assert by_text["make"].keys[1] in {f"slots:terminal-{pool}" for pool in range(4)}


def test_demonstrations_keep_clear_of_what_is_withheld() -> None:
    allowed = space().allowed(frozenset({"signature:make+copy", "slots:terminal-1"}))
    keys = {key for signature, _ in allowed for key in signature.keys}
    assert keys and keys.isdisjoint({"signature:make+copy", "slots:terminal-1", "slots:terminal-apart-link"})
    assert not any("link" in signature.skills for signature, _ in allowed)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"families": ("make", "fly")}, "terminal.families"),
        ({"apart": ("make",)}, "terminal.families"),
        ({"families": ()}, "terminal.families"),
        ({"apart": (), "apart_percent": 5}, "terminal.apart_percent"),
        ({"depth_weights": (0, 0)}, "terminal.depth_weights"),
        ({"depth_weights": (1, 1, 1, 1)}, "terminal.depth_weights"),
        ({"pools": 0}, "terminal.pools"),
    ],
)
def test_a_wrong_setting_names_its_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(UserError) as caught:
        space(**changes)
    assert caught.value.field == field
