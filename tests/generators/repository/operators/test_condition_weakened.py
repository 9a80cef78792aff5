"""`condition_weakened`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "condition_weakened",
    {
        "return (a and b)": ["return (a)", "return (b)"],
        "if a or b and c: g(1)": ["if a: g(1)", "if b and c: g(1)", "if a or b: g(1)", "if a or c: g(1)"],
        "return a": [],
    },
)
