"""`augmented_assignment`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "augmented_assignment",
    {
        "a += 1": ["a -= 1", "a = 1"],
        "a  |=  b": ["a  &=  b", "a  =  b"],
        "a += 'x'": ["a = 'x'"],
        "a **= 2": ["a = 2"],
        "a = 1": [],
    },
)
