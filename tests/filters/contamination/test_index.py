"""The index of shingle sets: candidates, verification, identity."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from datasketch import MinHashLSH
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from filters.contamination.index import IndexConfig, ShingleIndex
from filters.contamination.shingles import ShingleKind, Shingles, common, shingle

CONFIG = IndexConfig(kind=ShingleKind.WORDS)


def hashes(numbers: object) -> Shingles:
    """Well-spread 64-bit values for small integers."""
    return np.unique(np.array([(int(number) + 1) * 0x9E3779B97F4A7C15 % 2**64 for number in numbers], dtype=np.uint64))  # type: ignore[attr-defined]


def test_shingles_by_hand() -> None:
    left, right = shingle(list("abcd"), 2), shingle(list("bcde"), 2)
    assert (left.size, right.size, common(left, right)) == (3, 3, 2)  # ab bc cd | bc cd de
    assert shingle(list("ababa"), 2).size == 2
    assert shingle(["a"], 2).size == 0
    assert common(shingle(["ab", "c"], 2), shingle(["a", "bc"], 2)) == 0


def test_similarities_by_hand() -> None:
    index = ShingleIndex(CONFIG, postings=True)
    index.add("stored", hashes(range(4)))
    [found] = index.query(hashes(range(2, 10)))
    assert (found.jaccard, found.contained, found.within) == (2 / 10, 2 / 4, 2 / 8)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sets(st.integers(0, 60), max_size=40), min_size=1, max_size=8), st.sets(st.integers(0, 60), max_size=40))
def test_postings_miss_nothing_and_verification_is_exact(stored: list[set[int]], asked: set[int]) -> None:
    index = ShingleIndex(CONFIG, postings=True)
    for number, items in enumerate(stored):
        index.add(str(number), hashes(items))
    found = {pair.key: pair for pair in index.query(hashes(asked))}
    assert found.keys() == {str(number) for number, items in enumerate(stored) if items & asked}
    for key, pair in found.items():
        items = stored[int(key)]
        assert pair.jaccard == pytest.approx(len(items & asked) / len(items | asked))
        assert pair.contained == pytest.approx(len(items & asked) / len(items))


@pytest.mark.parametrize("shared", [29, 50, 67, 82])
def test_candidates_follow_the_s_curve(shared: int) -> None:
    """P(candidate) = 1 - (1 - s^r)^b for s = J; 300 pairs of sets of 100, `shared` of them common."""
    similarity = shared / (200 - shared)
    expected = 1 - (1 - similarity**4) ** 64
    pairs, found = 300, 0
    for pair in range(pairs):
        index = ShingleIndex(replace(CONFIG, seed=pair + 1))
        start = pair * 1000
        index.add("stored", hashes(range(start, start + 100)))
        found += len(index.proposals(hashes(range(start + 100 - shared, start + 200 - shared))))
    low, high = binom.interval(0.9999, pairs, expected)
    assert low <= found <= high


def test_recall_at_a_half_is_not_left_to_an_optimiser() -> None:
    """datasketch's own choice at threshold 0.8 would be 9 bands of 13 rows: recall 0.4 at the threshold."""
    chosen = MinHashLSH(threshold=0.8, num_perm=128)
    assert 1 - (1 - 0.8**chosen.r) ** chosen.b < 0.5
    assert 1 - (1 - 0.5**CONFIG.rows) ** CONFIG.bands > 0.98


def test_empty_sets_match_nothing() -> None:
    index = ShingleIndex(CONFIG, postings=True)
    index.add("empty", hashes([]))
    index.add("another", hashes([]))
    assert index.query(hashes([])) == index.query(hashes([1])) == []
    assert len(index) == 2 and "empty" in index


def test_lsh_alone_is_blind_to_a_small_part_and_postings_are_not() -> None:
    part, whole = hashes(range(20)), hashes(range(2000))
    blind, seeing = ShingleIndex(CONFIG), ShingleIndex(CONFIG, postings=True)
    blind.add("part", part)
    seeing.add("part", part)
    assert blind.query(whole) == []
    assert [(pair.contained, pair.routes) for pair in seeing.query(whole)] == [(1.0, ("postings",))]


def test_a_key_is_stored_once() -> None:
    index = ShingleIndex(CONFIG)
    index.add("a", hashes([1]))
    with pytest.raises(ValueError, match="already"):
        index.add("a", hashes([2]))


@pytest.mark.parametrize(
    "change",
    [{"kind": ShingleKind.PYTHON}, {"length": 4}, {"bands": 32}, {"rows": 3}, {"seed": 2}, {"scheme": "affine64"}],
)
def test_every_parameter_is_in_the_digest(change: dict[str, object]) -> None:
    assert replace(CONFIG, **change).digest != CONFIG.digest  # type: ignore[arg-type]


def test_the_versions_of_the_forms_are_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = CONFIG.digest
    for name in ("NORMALISER", "LEXER", "HASH"):
        with monkeypatch.context() as context:
            context.setattr(f"filters.contamination.index.{name}", 99)
            assert CONFIG.digest != before


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sets(st.integers(0, 60), max_size=40), min_size=1, max_size=8), st.sets(st.integers(0, 60), max_size=40))
def test_a_least_similarity_leaves_out_what_is_under_it_and_nothing_else(stored: list[set[int]], asked: set[int]) -> None:
    for postings in (True, False):
        index = ShingleIndex(CONFIG, postings=postings)
        for number, items in enumerate(stored):
            index.add(str(number), hashes(items))
        every = index.query(hashes(asked))
        assert index.query(hashes(asked), 0.5) == [pair for pair in every if pair.largest >= 0.5]


def test_candidates_are_the_same_in_another_process() -> None:
    code = (
        "from tests.filters.contamination.test_index import *\n"
        "index = ShingleIndex(CONFIG)\n"
        "for n in range(30): index.add(str(n), hashes(range(n * 7, n * 7 + 20)))\n"
        "print(index.proposals(hashes(range(50, 75))), CONFIG.digest)\n"
    )
    index = ShingleIndex(CONFIG)
    for number in range(30):
        index.add(str(number), hashes(range(number * 7, number * 7 + 20)))
    expected = f"{index.proposals(hashes(range(50, 75)))} {CONFIG.digest}"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "3"}
    )
    assert found.stdout.strip() == expected
