"""`global_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "global_removed",
    {
        "global d\nd = a": ["pass\nd = a"],
        "d = 0\ndef g():\n    nonlocal d\n    d += 1\nreturn g": ["d = 0\ndef g():\n    pass\n    d += 1\nreturn g"],
        "return a": [],
    },
)
