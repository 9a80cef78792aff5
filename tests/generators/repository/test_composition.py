"""Several edits as one mutation."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from factory.core.errors import UserError
from generators.repository.composition import Mix, composed
from generators.repository.edits import Edit
from generators.repository.sites import ProjectSites

TEXT = "def f(a, b):\n    if a < b:\n        return a - 1\n    return b\n\n\ndef g(a):\n    return a * 2\n"
TEXTS = {"m.py": TEXT, "n.py": "def h(x):\n    return x - 3\n"}


def edit(operator: str, path: str = "m.py", function: str = "f", variant: int = 0) -> Edit:
    """The edit of one operator that has one place in a function."""
    sites = ProjectSites({path: TEXTS[path]}, (operator,), seed=0, project="p")
    number, found = 0, []
    while (one := sites.edit(number)) is not None:
        number += 1
        if one.qualname == function and one.variant == variant:
            found.append(one)
    (only,) = found
    return only


def test_two_edits_of_one_function_are_both_in_the_text() -> None:
    made = composed([edit("arithmetic_operator"), edit("comparison_boundary")], "function", TEXTS)
    assert made is not None
    assert made.files(TEXTS) == {"m.py": TEXT.replace("a < b", "a <= b").replace("a - 1", "a + 1")}
    assert made.operators == ("comparison_boundary", "arithmetic_operator")
    assert made.sites == ("m.py:2:f", "m.py:3:f")
    assert made.lines(TEXTS) == (2, 3)
    assert made.what == "the boundary of a comparison and an arithmetic operator"


def test_edits_of_several_files() -> None:
    made = composed([edit("arithmetic_operator", "n.py", "h"), edit("comparison_boundary")], "package", TEXTS)
    assert made is not None
    assert made.files(TEXTS) == {"m.py": TEXT.replace("a < b", "a <= b"), "n.py": "def h(x):\n    return x + 3\n"}


def test_lines_move_with_what_is_above() -> None:
    made = composed([edit("condition_removed"), edit("arithmetic_operator", function="g")], "file", TEXTS)
    assert made is not None
    broken = made.files(TEXTS)["m.py"].split("\n")
    assert broken[made.lines(TEXTS)[1] - 1] == "    return a // 2"


def test_edits_that_meet_are_not_composed() -> None:
    assert composed([edit("comparison_boundary"), edit("condition_removed")], "function", TEXTS) is None
    assert composed([edit("comparison_boundary"), edit("comparison_boundary")], "function", TEXTS) is None


def test_an_edit_without_effect_beside_the_others_is_not_composed() -> None:
    first = edit("arithmetic_operator")
    at = TEXT.index("(a, b)")
    idle = replace(first, start=at, end=at + 1, new="( ", line=1)
    assert composed([first, idle], "function", TEXTS) is None


def test_what_does_not_compile_together_is_not_composed() -> None:
    first = edit("arithmetic_operator")
    wrong = replace(first, start=0, end=3, new="class", line=1)
    assert composed([first, wrong], "function", TEXTS) is None


def test_the_form_is_that_of_the_text_and_not_of_the_way_there() -> None:
    one, other = edit("arithmetic_operator"), edit("comparison_boundary")
    first, second = composed([one, other], "function", TEXTS), composed([other, one], "function", TEXTS)
    assert first is not None and second is not None
    assert first.form == second.form
    alone = composed([one], "single", TEXTS)
    assert alone is not None
    assert alone.form != first.form
    assert alone.files(TEXTS) == {"m.py": one.applied(TEXT)}
    assert ast.dump(ast.parse(one.applied(TEXT))) != ast.dump(ast.parse(TEXT))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"single": -1.0}, "repository.mix.single"),
        ({"single": float("nan")}, "repository.mix.single"),
        ({"most": 1}, "repository.mix.most"),
        ({"import_time": 1.5}, "repository.mix.import_time"),
        ({"single": 0.0, "function": 0.0, "file": 0.0, "package": 0.0, "call": 0.0}, "repository.mix"),
    ],
)
def test_a_wrong_mix_names_its_field(values: dict[str, float], named: str) -> None:
    with pytest.raises(UserError, match=named):
        Mix(**values)  # type: ignore[arg-type]
