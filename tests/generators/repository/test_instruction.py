"""Texts of tasks: what they show, what they give away, what they must not."""

from __future__ import annotations

import pytest

from generators.repository.instruction import Evidence, evidence, instruction, leaks, statement_at, window
from generators.repository.runs import Failure
from generators.repository.sites import Edit

BROKEN = "def area(w, h):\n    size = w + h\n    return size\n"
EDIT = Edit(
    operator="arithmetic_operator",
    path="shape.py",
    line=2,
    qualname="area",
    start=0,
    end=0,
    new="",
    one_line=True,
    function=(1, 3),
)
SHOWN = Evidence("assert area(2, 3) == 6", "AssertionError", "assert 5 == 6")


def text(explicitness: str, excerpt: int = 0, shown: Evidence | None = SHOWN) -> str:
    return instruction("shape==1.0", EDIT, BROKEN, explicitness=explicitness, failing=3, shown=shown, excerpt_lines=excerpt)


def test_the_symptom_is_what_fails_and_how() -> None:
    said = text("symptom")
    assert "shape 1.0" in said
    assert "assert area(2, 3) == 6" in said
    assert "AssertionError: assert 5 == 6" in said
    assert "2 other checks" in said
    assert "shape.py" not in said
    assert "size = w + h" not in said


def test_explicitness_adds_the_place_then_the_line() -> None:
    assert "area in shape.py" in text("function")
    assert "size = w + h" not in text("function")
    assert "Line 2 is wrong:\n    size = w + h" in text("line")


def test_an_excerpt_numbers_the_lines() -> None:
    assert "1|def area(w, h):\n2|    size = w + h\n3|    return size" in text("function", excerpt=10)
    assert "2|    size = w + h" in text("symptom", excerpt=1)
    assert "3|" not in text("symptom", excerpt=1)


def test_without_evidence_the_function_is_named() -> None:
    assert "area does not do what it should" in text("function", shown=None)


@pytest.mark.parametrize(("size", "expected"), [(100, (10, 60)), (5, (28, 32)), (51, (10, 60))])
def test_the_window_stays_inside_the_function(size: int, expected: tuple[int, int]) -> None:
    edit = Edit(**{**vars(EDIT), "line": 30, "function": (10, 60)})
    assert window(edit, size) == expected


def test_a_fixed_line_in_the_text_is_a_leak_unless_the_broken_file_has_it() -> None:
    assert leaks("It should be   size =  w * h.", ["    size = w * h"], BROKEN)
    assert not leaks("It should be fine.", ["    size = w * h"], BROKEN)
    assert not leaks("return size", ["    return size"], BROKEN)


TEST_FILE = """
def test_area():
    for w in (1, 2):
        assert area(
            w, 3
        ) == w * 3
    with raises(ValueError):
        area(-1, 0)
"""


def test_the_statement_around_a_line_is_quoted_whole() -> None:
    assert statement_at(TEST_FILE, 5) == "assert area(\n    w, 3\n) == w * 3"
    assert statement_at(TEST_FILE, 8) == "area(-1, 0)"
    assert statement_at(TEST_FILE, 7) == "with raises(ValueError):"
    assert statement_at(TEST_FILE, 0) == ""


def test_the_shortest_failure_with_a_message_is_shown() -> None:
    failures = [
        Failure("AssertionError", "assert 4 == 3\n  + where 4 = area(1, 3)", "t.py", 4),
        Failure("Failed", "DID NOT RAISE", "t.py", 7),
        Failure("ValueError", "", "t.py", 8),
        Failure("ValueError", "x", "other.py", 8),
    ]
    assert evidence(failures, {"t.py": TEST_FILE}) == Evidence("with raises(ValueError):", "Failed", "DID NOT RAISE")
    assert evidence(failures[3:], {"t.py": TEST_FILE}) is None
