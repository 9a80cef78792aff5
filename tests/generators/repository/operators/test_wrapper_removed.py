"""`wrapper_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "wrapper_removed",
    {
        "try:\n    # one\n    g(a)\nexcept B:\n    g(b)\nelse:\n    g(c)\ng(1)": ["g(1)", "# one\ng(a)\ng(c)\ng(1)"],
        "try:\n    g(a)\nfinally:\n    g(b)": ["pass", "g(a)\ng(b)"],
        "with a:\n    g(b)  # kept\ng(1)": ["g(1)", "g(b)  # kept\ng(1)"],
        "with a as d:\n    g(d)\ng(1)": ["g(1)"],
        "return a": [],
    },
)
