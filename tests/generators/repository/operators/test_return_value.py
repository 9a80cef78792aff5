"""`return_value`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "return_value",
    {
        "return a + b": ["return None"],
        "return(a)": ["return None"],
        "return a < b": ["return None", "return not (a < b)"],
        "return not a": ["return None", "return a"],
        "return a,  b": ["return None", "return b,  a"],
        "return None": [],
        "return": [],
    },
)
