"""`rounding_changed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "rounding_changed",
    {
        "return a // b": ["return a / b"],
        "return a / b": ["return a // b"],
        "return round(a)": ["return int(a)"],
        "return round(a, 2)": ["return round(a)"],
        "return int(a * b)": ["return round(a * b)"],
        "return math.ceil(a)": ["return round(a)"],
        "return int(a)": [],
        "return a.round(b)": [],
        "return a / 'x'": [],
    },
)
