"""Texts that mean the same have one form."""

from __future__ import annotations

import pytest

from generators.repository.forms import form_of


def _same(first: str, second: str) -> tuple[bool, bool]:
    one, other = form_of(first), form_of(second)
    assert one is not None and other is not None
    return one.tree == other.tree, one.code == other.code


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("x = 1  # one\n", "x   =  (1)\n", (True, True)),
        ("x = 2 + 3\n", "x = 3 + 2\n", (False, True)),
        ("x = 1\n", "x = True\n", (False, False)),
        ("x = 1\n", "x = 1.0\n", (False, False)),
        ("x = y in {'a', 'b'}\n", "x = y in {'b', 'a'}\n", (False, True)),
        ("x = 0.0\n", "x = -0.0\n", (False, False)),
        ("if a:\n    b\n", "if not a:\n    b\n", (False, False)),
    ],
)
def test_trees_and_code(first: str, second: str, same: tuple[bool, bool]) -> None:
    assert _same(first, second) == same


F, G = "    def f(self): return 1\n", "    def g(self): return 2\n"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (F + G, G + F, True),
        (F + "    @property\n" + G, "    @property\n" + G + F, True),
        (F + "    @on('b')\n" + G, "    @on('b')\n" + G + F, False),
        (F + "    def g(self, x=f): return 2\n", "    def g(self, x=f): return 2\n" + F, False),
        (F + "    def g(self, x=h()): return 2\n", "    def g(self, x=h()): return 2\n" + F, False),
        (F + "    def f(self): return 2\n", "    def f(self): return 2\n" + F, False),
        (F + "    x = 1\n" + G, G + "    x = 1\n" + F, False),
        (
            "    @property\n" + F + "    @f.setter\n    def f(self, x): pass\n",
            "    @f.setter\n    def f(self, x): pass\n    @property\n" + F,
            False,
        ),
    ],
)
def test_methods_may_change_places_when_making_them_runs_nothing(first: str, second: str, same: bool) -> None:
    assert _same(f"class A:\n{first}", f"class A:\n{second}") == (same, same)


def test_what_does_not_compile_has_no_form() -> None:
    assert form_of("def f(:\n") is None
    assert form_of("return 1\n") is None
    assert form_of("x = 1\0\n") is None
