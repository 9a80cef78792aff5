"""What holds for every operator."""

from __future__ import annotations

from pathlib import Path

import pytest

from generators.repository.operators import OPERATORS
from tests.generators.repository.operators.offers import offers

HERE = Path(__file__).parent


def test_each_has_a_test_module_of_its_own() -> None:
    assert {path.stem.removeprefix("test_") for path in HERE.glob("test_*.py")} == {*OPERATORS, "all"}


def test_each_says_what_it_is_for_people() -> None:
    words = [operator.what for operator in OPERATORS.values()]
    assert len(set(words)) == len(words)
    assert all(text[0].islower() and not text.endswith(".") for text in words)


@pytest.mark.parametrize("operator", OPERATORS)
def test_types_docstrings_imports_and_metadata_are_left_alone(operator: str) -> None:
    text = '''
import typing

__version__ = "3.4"
T = typing.TypeVar("T")


def f(a: typing.Literal["x", "y"], b: int) -> dict[1, 2]:
    """Text."""


if typing.TYPE_CHECKING:
    LIMIT = 3 + 4
'''
    assert offers(operator, text) == []
