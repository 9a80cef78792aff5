"""`rows_aliased`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "rows_aliased",
    {
        "return [[0] * a for _ in range(b)]": ["return [[0] * a] * b"],
        "return [{} for i in range(len(a))]": ["return [{}] * len(a)"],
        "return [[] for _ in range(a + b)]": ["return [[]] * (a + b)"],
        "return [[i] for i in range(a)]": [],
        "return [0 for i in range(a)]": [],
        "return [[] for i in a]": [],
        "return [[] for i in range(a) if b]": [],
    },
)
