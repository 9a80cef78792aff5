"""`handler_body`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "handler_body",
    {
        "try:\n    g(a)\nexcept B:  # why\n    g(b)\n    return c": [
            "try:\n    g(a)\nexcept B:  # why\n    pass",
            "try:\n    g(a)\nexcept B:  # why\n    raise",
        ],
        "try: g(a)\nexcept B: pass": ["try: g(a)\nexcept B: raise"],
        "try:\n    g(a)\nexcept B:\n    raise": ["try:\n    g(a)\nexcept B:\n    pass"],
        "try:\n    g(a)\nfinally:\n    g(b)": [],
    },
)
