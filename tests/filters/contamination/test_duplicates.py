"""Near-duplicates inside the registry."""

from __future__ import annotations

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.digest import digest_of
from filters.contamination.duplicates import DuplicateIndex
from generators.terminal.generator import TerminalGenerator


def text(start: int, count: int = 60) -> str:
    """`count` distinct words, counted on from `start`: sixty give 56 shingles of five."""
    return " ".join(f"w{number}" for number in range(start, start + count))


def task(number: int) -> str:
    return digest_of(number)


def test_an_exact_duplicate_is_rejected_and_shares_its_key() -> None:
    index = DuplicateIndex()
    first, second = index.add(task(1), "rm hopi"), index.add(task(2), "rm hopi\n")
    assert index.judge(first).passed
    evidence = index.judge(second)
    assert not evidence.passed and task(1)[:12] in evidence.reason and second.exact == task(1)
    assert first.keys == second.keys and len(first.keys) == 1 and first.keys[0].startswith("cluster:")


@pytest.mark.parametrize("other", ["rm Hopi", "rm hopi!", "rm  hopi", "rmhopi"])
def test_short_texts_that_differ_in_any_mark_are_two(other: str) -> None:
    index = DuplicateIndex()
    index.add(task(1), "rm hopi")
    placement = index.add(task(2), other)
    assert index.judge(placement).passed and placement.too_short


def test_similarity_by_hand_decides() -> None:
    """A shift by k words leaves 56 - k of 56 + k shingles: 55/57 = 0.965 rejects, 53/59 = 0.898 does not."""
    index = DuplicateIndex()
    index.add(task(1), text(0))
    near, far = index.query(text(1)), index.query(text(3))
    assert near.near[0].jaccard == pytest.approx(55 / 57) and not index.judge(near).passed
    assert far.near[0].jaccard == pytest.approx(53 / 59) and index.judge(far).passed
    assert near.keys == far.keys == index.query(text(0), apart_from=task(1)).keys != ()


def test_a_chain_joins_for_splits_and_rejects_nobody() -> None:
    """Each link shifts by 10 (46/66 = 0.70): neighbours join, ends (36/76, under 0.6) are strangers, none is rejected."""
    index = DuplicateIndex()
    placements = [index.add(task(number), text(10 * number)) for number in range(4)]
    assert all(index.judge(placement).passed for placement in placements)
    assert len({placement.keys for placement in placements}) == 1
    assert {pair.key for pair in placements[3].near} == {task(2)}


def test_a_late_link_carries_the_keys_of_both_clusters() -> None:
    index = DuplicateIndex()
    left, right = index.add(task(1), text(0)), index.add(task(2), text(20))
    assert left.keys != right.keys
    middle = index.add(task(3), text(10))
    assert set(middle.keys) == {*left.keys, *right.keys}
    assert index.add(task(1), text(0)).keys == left.keys


def test_a_text_inside_a_longer_one_joins_it() -> None:
    """30 words are 26 shingles, all among the 296 of 300 words: Jaccard 0.088, containment 1. LSH cannot promise it."""
    index = DuplicateIndex()
    index.add(task(1), text(0, 40))
    placement = index.add(task(2), text(0, 60))
    assert placement.near[0].contained == 1.0 and placement.near[0].jaccard == pytest.approx(36 / 56)


def test_a_changed_operator_in_long_code_is_another_task() -> None:
    body = "\n".join(f"    v{number} = v{number - 1} + {number}" for number in range(1, 12))
    code = f"def f(v0):\n{body}\n    if v3 < v4:\n        return v5\n    return v6"
    index = DuplicateIndex()
    index.add(task(1), code)
    placement = index.add(task(2), code.replace("v3 < v4", "v3 > v4"))
    assert placement.exact is None and placement.near and index.judge(placement).passed


def test_tasks_of_one_template_are_not_duplicates() -> None:
    """A frame shared by all would make one cluster of them; slots and solutions do not."""
    index, blobs = DuplicateIndex(), MemoryBlobs()
    found = [index.add(one.task.digest, one.text) for one in TerminalGenerator().generate(blobs, seed=3, start=0, count=200)]
    assert sum(index.judge(placement).passed for placement in found) > 190
    assert len({key for placement in found for key in placement.keys}) > 180


def test_the_registry_gives_the_same_keys_back() -> None:
    index = DuplicateIndex()
    for number in range(5):
        index.add(task(number), text(10 * number))
    restored = DuplicateIndex()
    for number in reversed(range(5)):
        restored.restore(task(number), text(10 * number), ("repository:x", *index.query(text(10 * number)).keys))
    assert len(restored) == 5 and task(3) in restored
    assert restored.query(text(12)) == index.query(text(12))
    assert restored.add(task(9), text(45)).keys == index.query(text(45)).keys
