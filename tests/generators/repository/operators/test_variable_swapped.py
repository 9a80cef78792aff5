"""`variable_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "variable_swapped",
    {
        "return a[b]": ["return b[b]", "return a[c]"],
        "return g(c)": ["return g(a)"],
        "d = 0\ne = len(a)\nreturn d": ["d = 0\ne = len(b)\nreturn d", "d = 0\ne = len(a)\nreturn e"],
        "d = 0\ng(d)\ne = 1": [],
        "d = 0\ne = 'x'\nreturn d": [],
        "d = 0\nif g():\n    e = 1\nreturn d": [],
        "a = 1": [],
        "a.x = 1": ["b.x = 1"],
    },
)
test_types = in_modules(
    "variable_swapped",
    {
        "def f(a: int, b: str, c: int):\n    return a\n": ["def f(a: int, b: str, c: int):\n    return c\n"],
        "def f(self, a=1, b='x'):\n    return a\n": [],
        "class A:\n    def f(self, a, b):\n        return a\n": ["class A:\n    def f(self, a, b):\n        return b\n"],
        "def f(a, b):\n    @d(a)\n    def g(x, y):\n        pass\n": [
            "def f(a, b):\n    @d(b)\n    def g(x, y):\n        pass\n"
        ],
        "@d(a)\ndef f(a, b):\n    pass\n": [],
    },
)
