"""`assignment_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "assignment_removed",
    {
        "a.x = b": ["pass"],
        "a[0] = b; g(a)": ["pass; g(a)"],
        "a = b": ["pass"],
        "d = 1\nd = b\nreturn d": ["pass\nd = b\nreturn d", "d = 1\npass\nreturn d"],
        "a += 1": ["pass"],
        "a.x: int = b": ["pass"],
        "d = b\nreturn d": [],
        "a.x: int": [],
    },
)
