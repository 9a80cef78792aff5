"""`chain_broken`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "chain_broken",
    {
        "return (a + b)": ["return (a)", "return (b)"],
        "return a * (b - c)": ["return a", "return (b - c)", "return a * (b)", "return a * (c)"],
        "return a": [],
    },
)
test_in_defaults = in_modules(
    "chain_broken", {"def f(a=X + 1):\n    pass\n": ["def f(a=X):\n    pass\n", "def f(a=1):\n    pass\n"]}
)
