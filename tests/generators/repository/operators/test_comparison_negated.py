"""`comparison_negated`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "comparison_negated",
    {
        "return a == b": ["return a != b"],
        "return a not in  b": ["return a in  b"],
        "return a is None": ["return a is not None"],
        "return a < b": [],
    },
)
