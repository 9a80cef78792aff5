from __future__ import annotations

from dataclasses import replace

import pytest

from factory.core.errors import Conflict, NotFound, UserError
from factory.core.policy import PolicyVersion
from registry.policies import Edge
from registry.store import Registry
from tests.registry.material import POLICY

NEXT = PolicyVersion(line="tiny", weights="b" * 64, step=10)
THIRD = PolicyVersion(line="tiny", weights="bbbbbbbb" + "c" * 56, step=20)


@pytest.fixture
def line(registry: Registry) -> Registry:
    registry.add_policy(POLICY, path="/weights/a", format="tiny")
    registry.add_policy(NEXT, path="/weights/b", format="tiny", parent=POLICY.weights)
    registry.add_policy(THIRD, path="/weights/c", format="tiny", parent=NEXT.weights)
    return registry


def test_the_version_registered_last_is_the_latest_and_again_is_a_no_op(line: Registry) -> None:
    assert not line.add_policy(POLICY, path="/elsewhere", format="tiny")
    latest = line.latest_policy("tiny")
    assert latest is not None
    assert (latest.version, latest.parent, latest.path, latest.format) == (THIRD, NEXT.weights, "/weights/c", "tiny")
    assert line.latest_policy("absent") is None
    assert [row.version for row in line.policies("tiny")] == [POLICY, NEXT, THIRD]


def test_references_to_policies(line: Registry) -> None:
    assert line.policy(POLICY.name).version == POLICY
    assert line.policy(NEXT.weights).version == NEXT
    assert line.policy("tiny@bbbbbbbbc").version == THIRD
    line.alias_set("served", THIRD.weights, expected=None)
    assert line.policy("served").version == THIRD
    for ambiguous in ("bbbbbbbb", "tiny@bbbbbbbb"):
        with pytest.raises(UserError, match="fits one version"):
            line.policy(ambiguous)
    for absent in ("other@bbbbbbbbc", "aaaa", "nothing", "0" * 64):
        with pytest.raises(NotFound):
            line.policy(absent)


def test_equal_weights_in_two_lines_are_told_apart_by_the_line(line: Registry) -> None:
    line.add_policy(replace(POLICY, line="copy"), path="/p", format="chat")
    with pytest.raises(UserError):
        line.policy(POLICY.weights)
    assert line.policy(f"copy@{POLICY.weights}").format == "chat"


def test_lineage_is_walked_both_ways(line: Registry) -> None:
    line.link([Edge(THIRD.weights, "task-1", "trained on"), Edge(THIRD.weights, "task-1", "trained on")])
    up = [Edge(NEXT.weights, POLICY.weights, "trained from"), Edge(THIRD.weights, NEXT.weights, "trained from")]
    assert line.ancestors(THIRD.weights) == sorted([*up, Edge(THIRD.weights, "task-1", "trained on")])
    assert line.descendants(POLICY.weights) == sorted(up)
    assert line.descendants("task-1") == [Edge(THIRD.weights, "task-1", "trained on")]
    assert line.ancestors(POLICY.weights) == []
    line.link([Edge(POLICY.weights, THIRD.weights, "loop")])
    assert len(line.ancestors(POLICY.weights)) == 4


def test_an_unknown_parent_is_refused(registry: Registry) -> None:
    with pytest.raises(NotFound, match="must be registered before"):
        registry.add_policy(NEXT, path="/p", format="tiny", parent=POLICY.weights)
    assert registry.policies() == []


def test_aliases_move_by_compare_and_set_with_a_log(registry: Registry) -> None:
    registry.alias_set("best", "a" * 64, expected=None)
    for expected in (None, "b" * 64):
        with pytest.raises(Conflict, match="points at a"):
            registry.alias_set("best", "c" * 64, expected=expected)
    registry.alias_set("best", "b" * 64, expected="a" * 64)
    assert registry.alias("best") == "b" * 64
    assert registry.aliases() == {"best": "b" * 64}
    assert [(move.old, move.new) for move in registry.alias_log("best")] == [(None, "a" * 64), ("a" * 64, "b" * 64)]
    with pytest.raises(NotFound):
        registry.alias("absent")
    with pytest.raises(Conflict, match="points at nothing"):
        registry.alias_set("new", "a" * 64, expected="b" * 64)


@pytest.mark.parametrize(("name", "digest"), [("deadbeef", "a" * 64), ("", "a" * 64), ("a" * 64, "a" * 64), ("best", "latest")])
def test_names_and_targets_of_aliases_are_checked(registry: Registry, name: str, digest: str) -> None:
    with pytest.raises(UserError):
        registry.alias_set(name, digest, expected=None)
