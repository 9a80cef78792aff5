"""Historical mistakes in present code."""

from __future__ import annotations

from typing import Any

import pytest

from factory.agent.endpoint import Endpoint
from generators.repository.language.config import LanguageConfig
from generators.repository.language.edits import LanguageEdit
from generators.repository.language.entities import Refused
from generators.repository.language.mirror import Change, mirrored, touched
from tests.factory.agent.chat_server import ChatServer

BEFORE = """def clamp(value, low, high):
    if value < low:
        return low
    return value


def span(low, high):
    return high - low
"""
AFTER = BEFORE.replace("    return value\n", "    if value > high:\n        return high\n    return value\n")
TODAY = '''"""Numbers."""


def clamp(value, low, high):
    """Keep a value within bounds."""
    # bounds first
    if value < low:
        return low
    if value > high:
        return high
    return +value


def span(low, high):
    return high - low
'''
CHANGE = Change("numbers.py", BEFORE, AFTER)
CONFIG = LanguageConfig()
ANSWER = "Here:\n```python\ndef clamp(value, low, high):\n    if value < low:\n        return low\n    return +value\n```\n"


def test_the_mistake_comes_back_into_code_that_moved_on(server: ChatServer, endpoint: Endpoint) -> None:
    server.answer = lambda body: ANSWER
    found = mirrored([CHANGE], {"numbers.py": TODAY}, CONFIG, endpoint, seed=1)
    assert isinstance(found, list)
    [edit] = found
    assert edit.applied(TODAY) == TODAY.replace("    if value > high:\n        return high\n", "")
    assert (edit.operator, edit.prompt, edit.qualname) == ("language_mirror", "mirror-1", "clamp")
    user = server.asked[0]["messages"][-1]["content"]
    assert "+    if value > high:" in user
    assert '"""Keep a value within bounds."""' in user
    assert "def span" not in user.split("Functions of today")[1]


def test_the_same_change_is_asked_once(server: ChatServer, endpoint: Endpoint) -> None:
    server.answer = lambda body: ANSWER
    first = mirrored([CHANGE], {"numbers.py": TODAY}, CONFIG, endpoint, seed=1)
    assert mirrored([CHANGE], {"numbers.py": TODAY}, CONFIG, endpoint, seed=1) == first
    assert len(server.asked) == 1
    mirrored([CHANGE], {"numbers.py": TODAY}, CONFIG, endpoint, seed=2)
    assert len(server.asked) == 2


def test_several_functions_make_an_edit_each(server: ChatServer, endpoint: Endpoint) -> None:
    both = Change("numbers.py", BEFORE, AFTER.replace("high - low", "abs(high - low)"))
    today = TODAY.replace("high - low", "abs(high - low)")
    server.answer = lambda body: f"{ANSWER}\nand\n```python\ndef span(low, high):\n    return high - low\n```\n"
    found = mirrored([both], {"numbers.py": today}, CONFIG, endpoint, seed=1)
    assert isinstance(found, list)
    assert [edit.qualname for edit in found] == ["clamp", "span"]
    text = today
    for edit in reversed(found):
        text = edit.applied(text)
    assert text == TODAY.replace("    if value > high:\n        return high\n", "")


def test_a_function_that_moved_to_another_file_is_found() -> None:
    found = touched([CHANGE], {"core/numbers.py": TODAY, "other.py": "x = 1\n"})
    assert isinstance(found, list)
    assert [(one.path, one.qualname) for one in found] == [("core/numbers.py", "clamp")]


@pytest.mark.parametrize(
    ("changes", "texts", "reason"),
    [
        ([CHANGE], {"numbers.py": "x = 1\n"}, "gone"),
        ([CHANGE], {"a.py": TODAY, "b.py": TODAY}, "gone"),
        ([Change("numbers.py", "x = 1\n", "x = 2\n")], {"numbers.py": "x = 2\n"}, "no function"),
        ([Change("numbers.py", "x = 1\n", BEFORE)], {"numbers.py": BEFORE}, "no function"),
        ([Change("numbers.py", BEFORE + "y = 2\n" * 300, AFTER)], {"numbers.py": TODAY}, "too large"),
    ],
)
def test_changes_that_can_not_be_mirrored(
    changes: list[Change], texts: dict[str, str], reason: str, server: ChatServer, endpoint: Endpoint
) -> None:
    found = mirrored(changes, texts, CONFIG, endpoint, seed=1)
    assert isinstance(found, Refused)
    assert found.reason == reason
    assert server.asked == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("I would rather not.", "no code"),
        (f"```python\n{TODAY.split(chr(10) * 3)[1]}\n```", "equal"),
        ("```python\ndef clamp(value):\n    return value\n```", "signature"),
    ],
)
def test_answers_that_make_no_edit(said: str, reason: str, server: ChatServer, endpoint: Endpoint) -> None:
    server.answer = lambda body: said
    found: Any = mirrored([CHANGE], {"numbers.py": TODAY}, CONFIG, endpoint, seed=1)
    assert not isinstance(found, LanguageEdit)
    assert found.reason == reason
