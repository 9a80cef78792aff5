"""`condition_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "condition_removed",
    {
        "# why\nif a:\n    # inner\n    g(1)  # one\n    g(2)\ng(3)": ["g(3)", "# why\n# inner\ng(1)  # one\ng(2)\ng(3)"],
        "if a: g(1)": ["pass", "g(1)"],
        "if a:\n    g(1)\nelse:\n    g(2)\ng(3)": ["g(3)"],
        "if a:\n    def h(): pass\n    g(h)\ng(3)": ["g(3)"],
        "if a:\n    if b:\n        g(1)": [
            "pass",
            "if b:\n    g(1)",
            "if a:\n    pass",
            "if a:\n    g(1)",
        ],
        "return a if b else c": [],
    },
)
test_in_methods = in_modules(
    "condition_removed",
    {
        "class A:\n    def f(self):\n        if self.x:\n            return 1\n        return 2\n": [
            "class A:\n    def f(self):\n        return 2\n",
            "class A:\n    def f(self):\n        return 1\n        return 2\n",
        ]
    },
)
