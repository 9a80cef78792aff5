"""`branch_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "branch_removed",
    {
        "if a:\n    g(1)\nelse:\n    g(2)  # two\ng(3)": ["if a:\n    g(1)\ng(3)"],
        "if a:\n    g(1)\nelif b:\n    g(2)\nelse:\n    g(3)": [
            "if a:\n    g(1)\nelse:\n    g(3)",
            "if a:\n    g(1)\nelif b:\n    g(2)",
        ],
        "try:\n    g(a)\nexcept B:\n    g(1)\nexcept C:\n    g(2)": [
            "try:\n    g(a)\nexcept C:\n    g(2)",
            "try:\n    g(a)\nexcept B:\n    g(1)",
        ],
        "match a:\n    case 1:\n        return b\n    case 2:\n        return c": [
            "match a:\n    case 2:\n        return c",
            "match a:\n    case 1:\n        return b",
        ],
        "if a:\n    g(1)": [],
        "try:\n    g(a)\nexcept B:\n    g(1)": [],
    },
)
