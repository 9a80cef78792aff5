"""`constant_boolean`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions("constant_boolean", {"return g(True)": ["return g(False)"], "return None": []})
test_elsewhere = in_modules(
    "constant_boolean",
    {
        "class A:\n    strict = False  # kept\n": ["class A:\n    strict = True  # kept\n"],
        "DEBUG = True\n": ["DEBUG = False\n"],
        "def f(a=True):\n    pass\n": [],
    },
)
