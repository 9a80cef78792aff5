"""`raise_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "raise_removed",
    {"raise ValueError(a)  # why": ["pass  # why"], "if a: raise B from c": ["if a: pass"], "return a": []},
)
