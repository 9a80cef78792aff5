"""`boolean_operator`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "boolean_operator",
    {"return a and b or c": ["return a or b or c", "return a and b and c"], "return a & b": [], "return not a": []},
)
test_at_module_level = in_modules(
    "boolean_operator",
    {
        "if A  and  B:\n    C = 1\n": ["if A  or  B:\n    C = 1\n"],
        "class A:\n    x = y or z\n": ["class A:\n    x = y and z\n"],
    },
)
