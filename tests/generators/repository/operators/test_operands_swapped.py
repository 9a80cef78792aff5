"""`operands_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "operands_swapped",
    {
        "return a - b": ["return b - a"],
        "return a < b": ["return b < a"],
        "return a + b - c": ["return c - (a + b)", "return b + a - c"],
        "return a is not None and a.x > b": ["return (a.x > b) and (a is not None)", "return a is not None and b > a.x"],
        "return a and b[a]": ["return b[a] and a"],
        "return a and b": [],
        "return '%s' % a": [],
        "return 2 + 3": [],
        "return a == b": [],
    },
)
