"""`keywords_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "keywords_swapped",
    {
        "return g(x=a,  y=b)": ["return g(x=b,  y=a)"],
        "return g(1, x=a, y=b, z=c)": ["return g(1, x=b, y=a, z=c)", "return g(1, x=a, y=c, z=b)"],
        "return g(a, x=b)": [],
        "return g(x=a, y=a)": [],
    },
)
