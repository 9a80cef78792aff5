"""Tests made to fail: each change is the smallest, keeps the lines, and fails where the test had passed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandboxes.verification.checkers import load_module

sabotaged = load_module("sabotage").sabotaged

CASES: dict[str, tuple[str, str, bool]] = {
    "a number": ("assert f(2) == 4", "assert f(2) == ", True),
    "a literal on the left": ("assert [4, 'a'] == [f(2), 'a']", "assert [", True),
    "a word": ("assert str(f(2)) == '4'", "assert str(f(2)) == '4", True),
    "a truth": ("assert (f(2) > 0) == True", "assert (f(2) > 0) == False", True),
    "nothing": ("assert None == g(2)", "assert '", True),
    "an empty list": ("assert [] == list()", "assert [0] == list()", True),
    "no literal": ("assert f(2) == f(2)", "assert not (f(2) == f(2))", False),
    "a condition with words": ("assert f(2), 'why'", "assert not (f(2)), 'why'", False),
    "an assertion method": ("self.assertTrue(f(2))", "self.assertFalse(f(2))", False),
    "an equality method": ("self.assertEqual(f(2), 4)", "self.assertEqual(f(2), ", True),
    "an equality method without a literal": ("self.assertEqual(f(2), f(2))", "self.assertNotEqual(f(2), f(2))", False),
    "no assertion": ("f(2)", "f(2); raise AssertionError(", False),
    "a block": (
        "with open('/dev/null'):\n        f(2)",
        "with open('/dev/null'):\n        f(2)\n    raise AssertionError(",
        False,
    ),
    "an assertion that may not be reached": (
        "if f(2) > 0:\n        return\n    assert 0",
        "raise AssertionError(",
        False,
    ),
}


class Self:
    """What the methods of `unittest` do, in one line each."""

    def __getattr__(self, name: str) -> Any:
        import unittest

        return getattr(unittest.TestCase(), name)


def ends_well(source: bytes) -> bool:
    space: dict[str, Any] = {"f": lambda value: 2 * value, "g": lambda value: None, "self": Self()}
    exec(compile(source, "test", "exec"), space)
    try:
        space["test_it"]()
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_a_test_that_passes_fails_after_the_change(name: str) -> None:
    body, start, literal = CASES[name]
    before = f"# é\ndef test_other():\n    assert 1 == 1\n\n\ndef test_it():\n    {body}  # é\n".encode()
    after, changed = sabotaged(before, [("test_it",)])
    head, _, tail = after.decode().partition("def test_it():\n    ")
    assert head == "# é\ndef test_other():\n    assert 1 == 1\n\n\n"
    assert tail.startswith(start) and tail != f"{body}  # é\n"
    assert changed == {("test_it",): literal}
    assert ends_well(before) and not ends_well(after)


def test_a_test_in_a_class_or_its_base_is_found_and_others_are_told() -> None:
    source = b"class A:\n    def test_a(self):\n        assert 1 == 1\n\n\nclass B(A):\n    pass\n"
    after, changed = sabotaged(source, [("B", "test_a"), ("C", "test_a"), ("test_a",)])
    assert set(changed) == {("B", "test_a")}
    assert after != source


@pytest.mark.parametrize("source", [b"def broken(:\n", b"\xff\xfe", b"# coding: latin-1\nx = '\xe9'\n", b"\0"])
def test_what_is_no_text_of_a_test_stays_as_it_is(source: bytes) -> None:
    assert sabotaged(source, [("test_it",)]) == (source, {})
