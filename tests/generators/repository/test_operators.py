"""Each operator on a before-string: the after-strings it may give, formatting and comments kept."""

from __future__ import annotations

import pytest

from generators.repository.operators import OPERATORS
from generators.repository.sites import ProjectSites

CASES: list[tuple[str, str, set[str]]] = [
    ("comparison_boundary", "return a  <= b  # kept", {"return a  < b  # kept"}),
    ("comparison_boundary", "return a > b", {"return a >= b"}),
    ("comparison_boundary", "return a == b", set()),
    ("comparison_negated", "return a == b", {"return a != b"}),
    ("comparison_negated", "return a not in  b", {"return a in  b"}),
    ("comparison_negated", "return a is None", {"return a is not None"}),
    ("boolean_operator", "return a and b or c", {"return a or b or c", "return a and b and c"}),
    ("condition_negated", "if a: f(b)", {"if not a: f(b)"}),
    ("condition_negated", "if not a: f(b)", {"if a: f(b)"}),
    ("condition_negated", "if a or b: f(c)", {"if not (a or b): f(c)"}),
    ("condition_negated", "if a == b: f(c)", set()),
    ("condition_weakened", "return (a and b)", {"return (a)", "return (b)"}),
    ("arithmetic_operator", "return a + b * c", {"return a - b * c", "return a + b // c"}),
    ("arithmetic_operator", "return 'x' + a", set()),
    ("augmented_assignment", "a += 1", {"a -= 1", "a = 1"}),
    ("constant_integer", "return a[0]", {"return a[1]"}),
    ("constant_integer", "return a + 7", {"return a + 8", "return a + 6"}),
    ("constant_integer", "return 0x1F", set()),
    ("constant_boolean", "return True", {"return False"}),
    ("constant_string", "return 'ab'", {"return 'a'", "return 'AB'"}),
    ("constant_string", '''"""Docstring."""''', set()),
    ("off_by_one", "return a[b:c]", {"return a[b + 1:c]", "return a[b - 1:c]", "return a[b:c + 1]", "return a[b:c - 1]"}),
    ("off_by_one", "return range(len(a))", {"return range(len(a) + 1)", "return range(len(a) - 1)"}),
    ("operands_swapped", "return a - b", {"return b - a"}),
    ("operands_swapped", "return a < b", {"return b < a"}),
    ("operands_swapped", "return a + b - c", {"return c - (a + b)", "return b + a - c"}),
    ("chain_broken", "return (a + b)", {"return (a)", "return (b)"}),
    ("return_value", "return a + b", {"return None"}),
    ("return_value", "return a < b", {"return None", "return not (a < b)"}),
    ("return_value", "return None", set()),
    ("early_return_removed", "if a:\n        return b  # why\n    c()", {"if a:\n        pass  # why\n    c()"}),
    ("early_return_removed", "return a", set()),
    ("raise_removed", "raise ValueError(a)", {"pass"}),
    ("assignment_removed", "a.x = b", {"pass"}),
    ("assignment_removed", "d = b", set()),
    ("call_removed", "a.append(b)", {"pass"}),
    ("loop_control", "for x in a:\n        break", {"for x in a:\n        continue"}),
    ("branches_swapped", "return a if b else c", {"return c if b else a"}),
    (
        "branches_swapped",
        "if a:\n        f(1)  # one\n    else:\n        f(2)",
        {"if a:\n        f(2)\n    else:\n        f(1)  # one"},
    ),
    ("statements_shuffled", "f(a)\n    f(b)", {"f(b)\n    f(a)"}),
    ("arguments_swapped", "return f(a,  b)", {"return f(b,  a)"}),
    ("arguments_swapped", "return f(a, key=b)", set()),
    ("argument_dropped", "return f(a, key=b)", {"return f(a)"}),
    ("argument_dropped", "return f(key=a, other=b)", {"return f(other=b)", "return f(key=a)"}),
    (
        "exception_type",
        "try:\n        f(a)\n    except ValueError:\n        f(b)",
        {"try:\n        f(a)\n    except KeyError:\n        f(b)"},
    ),
    ("exception_type", "raise TypeError(a)", {"raise ValueError(a)"}),
    ("function_swapped", "return max(a, b)", {"return min(a, b)"}),
    ("function_swapped", "return a.lstrip()", {"return a.rstrip()"}),
    ("variable_swapped", "return a[b]", {"return a[c]"}),
    ("variable_swapped", "return f(c)", {"return f(a)"}),
    ("copy_missing", "return list(a)", {"return a"}),
    ("copy_missing", "return a.copy()", {"return a"}),
    ("sign_dropped", "return -a", {"return a"}),
]


def outcomes(operator: str, text: str) -> set[str]:
    sites = ProjectSites({"m.py": text}, (operator,), seed=0, project="p")
    found = set()
    number = 0
    while (edit := sites.edit(number)) is not None:
        assert edit.operator == operator
        found.add(edit.applied(text))
        number += 1
    assert len(found) == number
    return found


@pytest.mark.parametrize(("operator", "before", "after"), CASES)
def test_before_and_after(operator: str, before: str, after: set[str]) -> None:
    frame = "def f(a, b, c):\n    {}\n\n\nx = 1  # tail\n"
    assert outcomes(operator, frame.format(before)) == {frame.format(text) for text in after}


def test_default_arguments() -> None:
    before = "def f(a=1, *, b=False, c='x'):\n    return a, b, c\n"
    after = {before.replace("a=1", "a=2"), before.replace("False", "True"), before.replace("'x'", "''")}
    assert outcomes("default_argument", before) == after


def test_every_operator_has_a_case() -> None:
    assert set(OPERATORS) == {operator for operator, _, _ in CASES} | {"default_argument"}
    assert len(OPERATORS) >= 25


@pytest.mark.parametrize("operator", OPERATORS)
def test_types_decorators_docstrings_and_module_code_are_left_alone(operator: str) -> None:
    text = '''
import typing

LIMIT = 3 + 4


@decorate(1, key="a")
def f(a: typing.Literal["x", "y"]) -> dict[1, 2]:
    """Text."""
'''
    assert outcomes(operator, text) == set()
