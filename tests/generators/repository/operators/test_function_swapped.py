"""`function_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "function_swapped",
    {
        "return max(a, b)": ["return min(a, b)"],
        "return a.lstrip()": ["return a.rstrip()"],
        "return a.strip('/')": ["return a.lstrip('/')"],
        "return a.max(b)": [],
        "return a.lower": [],
    },
)
