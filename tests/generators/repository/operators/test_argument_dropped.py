"""`argument_dropped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "argument_dropped",
    {
        "return g(a, key=b)": ["return g(a)"],
        "return g(key=a,  other=b)  # kept": ["return g(other=b)  # kept", "return g(key=a)  # kept"],
        "return g(key=a)": [],
        "return g(a, b)": [],
    },
)
test_elsewhere = in_modules(
    "argument_dropped",
    {
        "@register(1, name='f')\ndef f():\n    pass\n": ["@register(1)\ndef f():\n    pass\n"],
        "LIMITS = Limits(low=1, high=2)\n": ["LIMITS = Limits(high=2)\n", "LIMITS = Limits(low=1)\n"],
    },
)
