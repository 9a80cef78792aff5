"""Named random streams."""

from __future__ import annotations

import subprocess
import sys
from statistics import correlation

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.streams import stream, stream_seed

PARTS = st.lists(st.integers() | st.text("ab1", max_size=4), max_size=3)


def test_known_seed() -> None:
    """First 8 bytes of `printf '0\\x1fsa' | sha256sum`, 046a2250fec7d574, halved."""
    assert stream_seed(0, "a") == 0x046A2250FEC7D574 >> 1


@given(st.integers(), PARTS, st.integers(), PARTS)
def test_seeds_are_equal_only_for_equal_purposes(seed: int, left: list[int | str], other: int, right: list[int | str]) -> None:
    assert 0 <= stream_seed(seed, *left) < 2**63
    assert (stream_seed(seed, *left) == stream_seed(other, *right)) == ((seed, left) == (other, right))


def test_numbers_and_their_texts_are_two_purposes() -> None:
    seeds = {stream_seed(1, "a", 1), stream_seed(1, "a", "1"), stream_seed(1, "a1"), stream_seed(1, "a", "", "1")}
    assert len(seeds) == 4


def test_one_consumer_does_not_shift_another() -> None:
    alone = stream(7, "names").random()
    greedy = stream(7, "contents")
    [greedy.random() for _ in range(100)]
    assert stream(7, "names").random() == alone


@pytest.mark.parametrize("purpose", [("a", "b"), (1, 2), ("task 1", "task 2")])
def test_neighbouring_streams_do_not_follow_each_other(purpose: tuple[str | int, str | int]) -> None:
    left, right = (stream(0, part) for part in purpose)
    draws = [(left.random(), right.random()) for _ in range(2000)]
    assert abs(correlation(*zip(*draws, strict=True))) < 0.1


def test_another_process_gives_the_same_draws() -> None:
    code = "from factory.core.streams import stream; print(stream(3, 'x', 4).random())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": "5"})
    assert float(found.stdout) == stream(3, "x", 4).random()
