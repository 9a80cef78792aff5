"""`arguments_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "arguments_swapped",
    {
        "return g(a,  b)": ["return g(b,  a)"],
        "return g(a, b, c)": ["return g(b, a, c)", "return g(a, c, b)"],
        "return g(a, key=b)": [],
        "return g(a, *b)": [],
        "return g(a, a)": [],
    },
)
