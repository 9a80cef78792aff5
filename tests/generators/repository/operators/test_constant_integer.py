"""`constant_integer`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "constant_integer",
    {"return a[0]": ["return a[1]"], "return a + 7": ["return a + 8", "return a + 6"], "return 0x1F": [], "return 1_000": []},
)
test_elsewhere = in_modules(
    "constant_integer",
    {
        "LIMIT = 3  # kept\n": ["LIMIT = 4  # kept\n", "LIMIT = 2  # kept\n"],
        "class A:\n    size: Literal[1] = 5\n\n    def f(self): return 2\n": [
            "class A:\n    size: Literal[1] = 6\n\n    def f(self): return 2\n",
            "class A:\n    size: Literal[1] = 4\n\n    def f(self): return 2\n",
            "class A:\n    size: Literal[1] = 5\n\n    def f(self): return 3\n",
            "class A:\n    size: Literal[1] = 5\n\n    def f(self): return 1\n",
        ],
        "def f(a=1):\n    pass\n": [],
        "__version__ = 1\n": [],
        "A = 1; B = 2\n": [],
    },
)
