"""`statements_shuffled`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "statements_shuffled",
    {
        "g(a)\ng(b)": ["g(b)\ng(a)"],
        "d = a\n# then\ne = d  # e": ["# then\ne = d  # e\nd = a"],
        "d = 0\nfor x in a:\n    d += x\nreturn d": ["for x in a:\n    d += x\nd = 0\nreturn d"],
        "self.x = a\nself.y = b": [],
        "d = a\nreturn d": [],
        '"""Text."""\ng(a)': [],
    },
)
