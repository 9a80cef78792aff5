"""Texts of tasks: what they show and what they give away, in every wording."""

from __future__ import annotations

import pytest

from generators.repository.evidence import Evidence
from generators.repository.instruction import instruction, window
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
OTHER = Evidence("assert area(4, 4) == 16", "AssertionError", "assert 8 == 16")
SHOWN = Evidence("assert area(*case) == 6", "AssertionError", "assert 5 == 6", others=(OTHER,))
SEEDS = range(40)


def text(
    explicitness: str = "symptom", excerpt: int = 0, shown: Evidence | None = SHOWN, seed: int = 0, failing: int = 4
) -> str:
    return instruction(
        "shape==1.0", EDIT, BROKEN, explicitness=explicitness, failing=failing, shown=shown, excerpt_lines=excerpt, seed=seed
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_symptom_is_what_fails_and_how(seed: int) -> None:
    said = text(seed=seed)
    assert "shape 1.0" in said.split("\n")[0]
    assert "    assert area(*case) == 6\n" in f"{said}\n"
    assert "    AssertionError: assert 5 == 6\n" in said
    assert "    assert area(4, 4) == 16  # AssertionError: assert 8 == 16\n" in said
    assert "2 other checks" in said or "2 more checks" in said
    assert "shape.py" not in said
    assert "size = w + h" not in said
    assert said.endswith("submit.")


def test_wordings_differ_and_the_seed_decides() -> None:
    assert len({text(seed=seed) for seed in SEEDS}) > 20
    assert text(seed=3) == text(seed=3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_call_that_stands_alone_is_shown_as_a_session(seed: int) -> None:
    alone = Evidence("assert box.area() == 6", "AssertionError", "assert 5 == 6", "box = Box(\n    2)\nbox.add(3)", alone=True)
    said = text(shown=alone, seed=seed, failing=1)
    assert "    >>> box = Box(\n    ...     2)\n    >>> box.add(3)\n    >>> box.area()\n    5\n" in said
    assert "6." in said
    assert "other" not in said and "more" not in said


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (Evidence("with raises(ValueError):\n    f(-1)", "Failed", "DID NOT RAISE <class 'ValueError'>"), ">>> f(-1)\n"),
        (Evidence("f(1)", "KeyError", "'a'"), ">>> f(1)\n    KeyError: 'a'\n"),
    ],
)
def test_errors_in_sessions(shown: Evidence, expected: str) -> None:
    said = text(shown=Evidence(shown.statement, shown.type, shown.message, alone=True), failing=1)
    assert expected in said
    assert shown.type == "KeyError" or "ValueError" in said


def test_explicitness_adds_the_place_then_the_line() -> None:
    for seed in SEEDS:
        assert "area in shape.py" in text("function", seed=seed)
        assert "size = w + h" not in text("function", seed=seed)
        assert "\n    size = w + h\n" in text("line", seed=seed)


def test_an_excerpt_numbers_the_lines() -> None:
    assert "1|def area(w, h):\n2|    size = w + h\n3|    return size" in text("function", excerpt=10)
    assert "2|    size = w + h" in text("symptom", excerpt=1)
    assert "3|" not in text("symptom", excerpt=1)


def test_without_evidence_the_function_is_named() -> None:
    assert all("area" in text("function", shown=None, seed=seed).split("\n")[1] for seed in SEEDS)


@pytest.mark.parametrize(("size", "expected"), [(100, (10, 60)), (5, (28, 32)), (51, (10, 60))])
def test_the_window_stays_inside_the_function(size: int, expected: tuple[int, int]) -> None:
    edit = Edit(**{**vars(EDIT), "line": 30, "function": (10, 60)})
    assert window(edit, size) == expected
