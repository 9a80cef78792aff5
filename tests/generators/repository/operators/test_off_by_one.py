"""`off_by_one`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "off_by_one",
    {
        "return a[b:c]": ["return a[b + 1:c]", "return a[b - 1:c]", "return a[b:c + 1]", "return a[b:c - 1]"],
        "return range(len(a))": ["return range(len(a) + 1)", "return range(len(a) - 1)"],
        "return range(a + b)": ["return range(a + b + 1)", "return range(a + b - 1)"],
        "return a[1:-1]": [],
        "return range(3)": [],
        "return a[b]": [],
    },
)
