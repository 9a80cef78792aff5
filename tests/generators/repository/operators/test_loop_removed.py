"""`loop_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "loop_removed",
    {
        "d = 0\n\nfor x in a:\n    d += x\nelse:\n    g(d)\nreturn d": ["d = 0\nreturn d"],
        "while a: a = g(a)": ["pass"],
        "return [x for x in a]": [],
    },
)
