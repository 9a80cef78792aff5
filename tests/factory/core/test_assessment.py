"""Assessments and the states they give; names of policy versions; blobs in memory."""

from __future__ import annotations

import pytest

from factory.core.assessment import Assessment, TaskState, TaskStatus
from factory.core.blobs import BlobStore, MemoryBlobs, get_json, put_json
from factory.core.digest import digest_of
from factory.core.errors import NotFound
from factory.core.policy import PolicyVersion


def assessment(k: int, n: int, masked: int = 0) -> Assessment:
    return Assessment(task="a" * 64, line="tiny", policy="b" * 64, successes=k, rollouts=n, masked=masked)


@pytest.mark.parametrize(
    ("k", "n", "state"),
    [
        (0, 0, TaskState.UNASSESSED),
        (0, 8, TaskState.TOO_HARD),
        (1, 8, TaskState.FRONTIER),
        (7, 8, TaskState.FRONTIER),
        (8, 8, TaskState.MASTERED),
        (0, 1, TaskState.TOO_HARD),
    ],
)
def test_states_follow_from_k_and_n(k: int, n: int, state: TaskState) -> None:
    assert assessment(k, n, masked=5).state is state


def test_intervals_are_wilsons() -> None:
    """5 of 10: (0.2366, 0.7634), as in any table."""
    found = assessment(5, 10).interval
    assert (round(found.low, 4), found.mean, round(found.high, 4)) == (0.2366, 0.5, 0.7634)
    with pytest.raises(ValueError, match="trials"):
        _ = assessment(0, 0, masked=3).interval


def test_words_of_status_and_state() -> None:
    assert [status.value for status in TaskStatus] == ["candidate", "accepted", "rejected", "quarantined", "withdrawn"]
    assert [state.value for state in TaskState] == ["unassessed", "too hard", "frontier", "mastered"]


def test_policy_versions_are_named_by_their_weights() -> None:
    assert PolicyVersion(line="tiny", weights="0123456789abcdef" * 4, step=3).name == "tiny@0123456789ab"


def test_blobs_in_memory() -> None:
    blobs = MemoryBlobs()
    assert isinstance(blobs, BlobStore)
    digest = blobs.put(b"abc")
    assert digest == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert blobs.put(b"abc") == digest and blobs.get(digest) == b"abc" and blobs.has(digest) and not blobs.has("0" * 64)
    with pytest.raises(NotFound):
        blobs.get("0" * 64)
    value = {"b": [1, "é"], "a": None}
    assert put_json(blobs, value) == digest_of(value) and get_json(blobs, digest_of(value)) == value
