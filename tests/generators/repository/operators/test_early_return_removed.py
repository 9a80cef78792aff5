"""`early_return_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "early_return_removed",
    {
        "if a:\n    return b  # why\nc()": ["if a:\n    pass  # why\nc()"],
        "return a": [],
        "if a:\n    g()\n    return b": [],
        "for x in a:\n    return x": [],
    },
)
