"""`branches_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "branches_swapped",
    {
        "return a if b else c": ["return c if b else a"],
        "if a:\n    g(1)  # one\nelse:\n    g(2)": ["if a:\n    g(2)\nelse:\n    g(1)  # one"],
        "if a:\n    g(1)\nelif b:\n    g(2)": [],
        "if a:\n    g(1)\nelse:\n    g(1)": [],
    },
)
