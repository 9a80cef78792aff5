"""`condition_negated`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "condition_negated",
    {
        "if a: g(b)": ["if not a: g(b)"],
        "if not a: g(b)": ["if a: g(b)"],
        "if a or b: g(c)": ["if not (a or b): g(c)"],
        "return [x for x in a if x.ok]": ["return [x for x in a if not x.ok]"],
        "if a == b: g(c)": [],
        "while a: g(b)": [],
        "return a": [],
    },
)
