"""`arithmetic_operator`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "arithmetic_operator",
    {
        "return a + b * c": ["return a - b * c", "return a + b // c"],
        "return a  <<  b": ["return a  >>  b"],
        "return 'x' + a": [],
        "return a ** b": [],
    },
)
test_at_module_level = in_modules("arithmetic_operator", {"SIZE = WIDTH * HEIGHT  # px\n": ["SIZE = WIDTH // HEIGHT  # px\n"]})
