"""Actions and bounded observations."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.action import Action, bounded_text
from factory.core.demonstration import Demonstration
from factory.core.digest import digest_of


@pytest.mark.parametrize(
    ("output", "limit", "dropped", "text", "omitted"),
    [
        (b"abc", 3, 0, "abc", 0),
        (b"", 0, 0, "", 0),
        (b"abcdefgh", 4, 0, "ab\n[... 4 bytes omitted ...]\ngh", 4),
        (b"abcdefgh", 5, 0, "abc\n[... 3 bytes omitted ...]\ngh", 3),
        (b"abcdefgh", 0, 0, "\n[... 8 bytes omitted ...]\n", 8),
        (b"abcd", 4, 10, "ab\n[... 10 bytes omitted ...]\ncd", 10),
        (b"abcd", 2, 10, "a\n[... 12 bytes omitted ...]\nd", 12),
        (b"\xff\xfe", 8, 0, "\\xff\\xfe", 0),
        ("é".encode() * 2, 3, 0, "é\n[... 1 bytes omitted ...]\n\\xa9", 1),
    ],
)
def test_bounded_text_by_hand(output: bytes, limit: int, dropped: int, text: str, omitted: int) -> None:
    assert bounded_text(output, limit, dropped) == (text, omitted)


@given(st.binary(max_size=200), st.integers(0, 250), st.integers(0, 1000))
def test_every_byte_is_shown_or_counted(output: bytes, limit: int, dropped: int) -> None:
    text, omitted = bounded_text(output, limit, dropped)
    text.encode()  # decodes safely: no lone surrogate is left
    assert omitted == max(0, len(output) - limit) + dropped
    if omitted:
        head, _, tail = text.partition(f"\n[... {omitted} bytes omitted ...]\n")
        assert len(head) <= 4 * ((limit + 1) // 2) and len(tail) <= 4 * (limit // 2) + 4
    else:
        assert text == output.decode(errors="backslashreplace")


def test_an_action_cannot_be_changed_from_outside() -> None:
    arguments = {"command": "ls"}
    action = Action("bash", arguments)
    arguments["command"] = "rm -rf /"
    assert action.arguments == {"command": "ls"}
    with pytest.raises(TypeError):
        action.arguments["command"] = "x"  # type: ignore[index]


def test_actions_pickle_and_have_manifests() -> None:
    action = Action("edit", {"path": "a", "line": "1", "text": "b"})
    assert pickle.loads(pickle.dumps(action)) == action
    assert action.manifest() == {"tool": "edit", "arguments": {"path": "a", "line": "1", "text": "b"}}


def test_demonstrations_survive_their_manifest() -> None:
    demonstration = Demonstration((Action("bash", {"command": "ls"}), Action("submit")))
    assert Demonstration.from_manifest(demonstration.manifest()) == demonstration
    assert demonstration.digest == digest_of(
        [{"tool": "bash", "arguments": {"command": "ls"}}, {"tool": "submit", "arguments": {}}]
    )
