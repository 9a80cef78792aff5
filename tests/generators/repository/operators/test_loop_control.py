"""`loop_control`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "loop_control",
    {
        "for x in a:\n    break": ["for x in a:\n    continue"],
        "for x in a:\n    if x: continue\n    g(x)": ["for x in a:\n    if x: break\n    g(x)"],
        "return a": [],
    },
)
