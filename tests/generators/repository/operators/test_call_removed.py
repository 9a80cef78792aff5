"""`call_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "call_removed",
    {"a.append(b)": ["pass"], "g(a); g(b)": ["pass; g(b)", "g(a); pass"], "x = g(a)": [], "return g(a)": [], "a": []},
)
