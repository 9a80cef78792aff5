"""What is quoted of failing tests."""

from __future__ import annotations

import pytest

from generators.repository.evidence import Evidence, evidence, setup_of, statement_at
from generators.repository.reproduction import Reproduction, reproduction
from generators.repository.runs import Failure

TEST_FILE = """
import pytest
from shapes import Box, area

SIDE = 3


def make():
    return Box()


def test_area():
    for w in (1, 2):
        assert area(
            w, 3
        ) == w * 3
    with pytest.raises(ValueError):
        area(-1, 0)


def test_box():
    size = 4
    other = size + 1
    box = Box(size)
    box.add(2)
    with box:
        left = box.left
        assert left == 2


def test_helper(case):
    assert area(*case) == 1
    box = make()
    assert box.left == 1
    assert area(SIDE, 1) == 3
"""


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(TEST_FILE.split("\n"), 1) if text in line)


def test_the_statement_around_a_line_is_quoted_whole() -> None:
    assert statement_at(TEST_FILE, line_of("w, 3")) == "assert area(\n    w, 3\n) == w * 3"
    assert statement_at(TEST_FILE, line_of("area(-1, 0)")) == "area(-1, 0)"
    assert statement_at(TEST_FILE, line_of("raises(")) == "with pytest.raises(ValueError):\n    area(-1, 0)"
    assert statement_at(TEST_FILE, line_of("for w")) == "for w in (1, 2):"
    assert statement_at(TEST_FILE, 0) == ""
    assert statement_at("def f(:", 1) == ""


def test_the_statements_that_make_the_names_come_along() -> None:
    setup, alone = setup_of(TEST_FILE, line_of("left == 2"))
    assert setup == "size = 4\nbox = Box(size)\nbox.add(2)\nleft = box.left"
    assert alone


@pytest.mark.parametrize("text", ["area(*case)", "box.left == 1", "area(SIDE, 1)", "w, 3"])
def test_names_from_elsewhere_can_not_be_repeated(text: str) -> None:
    """A parameter, a helper of the test file, its constant, and a loop's variable."""
    assert setup_of(TEST_FILE, line_of(text)) == ("", False)


def test_long_setups_are_left_out() -> None:
    lines = [f"    a{number} = {'a' if number else '0'}{number - 1 if number else ''}" for number in range(9)]
    text = "def test():\n" + "\n".join(lines) + "\n    assert a8 == 1\n"
    assert setup_of(text, 11) == ("", False)


def test_the_shortest_failure_with_a_message_is_shown_and_the_next_ones_after_it() -> None:
    failures = [
        Failure("AssertionError", "assert 4 == 3\n  + where 4 = area(1, 3)", "t.py", line_of("w, 3")),
        Failure("Failed", "DID NOT RAISE", "t.py", line_of("raises(")),
        Failure("ValueError", "", "t.py", line_of("area(-1, 0)")),
        Failure("ValueError", "x", "other.py", 8),
        Failure("AssertionError", "assert 0 == 2", "t.py", line_of("left == 2")),
    ]
    found = evidence(failures, {"t.py": TEST_FILE})
    assert found is not None
    assert (found.statement, found.type, found.message) == ("assert left == 2", "AssertionError", "assert 0 == 2")
    assert found.alone
    assert [other.statement for other in found.others] == ["area(-1, 0)"]  # the others have several lines
    assert evidence(failures[3:4], {"t.py": TEST_FILE}) is None


def test_other_values_of_the_same_statement_are_told() -> None:
    at = line_of("area(*case)")
    failures = [Failure("AssertionError", f"assert {value} == 1", "t.py", at) for value in (5, 7, 7, 9, 11)]
    found = evidence(failures, {"t.py": TEST_FILE})
    assert found is not None
    messages = [found.message, *(other.message for other in found.others)]
    assert messages == ["assert 5 == 1", "assert 7 == 1", "assert 9 == 1"]


@pytest.mark.parametrize(
    ("statement", "type", "message", "expected"),
    [
        ("assert area(2, 3) == 6", "AssertionError", "assert 5 == 6\n +  where 5 = area(2, 3)", ("area(2, 3)", "5", "6")),
        ("assert 6 == area(2, 3)", "AssertionError", "assert 6 == 5\n +  where 5 = area(2, 3)", ("area(2, 3)", "5", "6")),
        ("assert f('a') == 'b c'", "AssertionError", "assert 'x' == 'b c'\n  - b c\n  + x", ("f('a')", "'x'", "'b c'")),
        ('assert f("a") == "b"', "AssertionError", "assert 'x' == 'b'", ('f("a")', "'x'", '"b"')),
        ("assert f(1) == [1, 2]", "AssertionError", "told why\nassert [1] == [1, 2]", ("f(1)", "[1]", "[1, 2]")),
        ("assert f(1) is None", "AssertionError", "assert 3 is None\n +  where 3 = f(1)", ("f(1)", "3", "None")),
        ("assert f(1)", "AssertionError", "assert False\n +  where False = f(1)", ("f(1)", "False", "True")),
        ("assert not f(1)", "AssertionError", "assert not True\n +  where True = f(1)", ("f(1)", "True", "False")),
        ("self.assertEqual(f(1), 2)", "AssertionError", "3 != 2", ("f(1)", "3", "2")),
        ("self.assertEqual(2, f(1), 'why')", "AssertionError", "2 != 3 : why", None),
        ("self.assertTrue(f(1))", "AssertionError", "False is not true", ("f(1)", "False", "True")),
        ("assert f(1) == f(2)", "AssertionError", "assert 1 == 2", None),
        ("assert f(1) < 2", "AssertionError", "assert 3 < 2", None),
        ("assert f(1) == 2", "AssertionError", "assert <Box object at 0x...> == 2", None),
        ("assert f(1)", "AssertionError", "assert []\n +  where [] = f(1)", None),
        ("assert f(1) == 2", "KeyError", "'a'", ("f(1)", "KeyError: 'a'", "2")),
        ("box = Box(1)", "TypeError", "no", ("box = Box(1)", "TypeError: no", "")),
        ("with raises(ValueError):\n    f(-1)", "Failed", "DID NOT RAISE <class 'ValueError'>", ("f(-1)", "", "ValueError")),
        ("with raises(ValueError):\n    a()\n    f(-1)", "Failed", "DID NOT RAISE <class 'ValueError'>", None),
        ("for a in b:", "ValueError", "x", None),
    ],
)
def test_a_failing_assertion_as_a_session(
    statement: str, type: str, message: str, expected: tuple[str, str, str] | None
) -> None:
    found = reproduction(Evidence(statement, type, message))
    if expected is None:
        assert found is None
    else:
        assert isinstance(found, Reproduction)
        assert (found.call, found.gave, found.expected) == expected
