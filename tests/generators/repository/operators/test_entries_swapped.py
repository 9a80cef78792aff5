"""`entries_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "entries_swapped",
    {
        "return [a,  b]": ["return [b,  a]"],
        "return {1: a, 2: b}": ["return {1: b, 2: a}"],
        "return {1: a, **b}": [],
        "return {a, b}": [],
        "[d, e] = a": [],
    },
)
test_at_module_level = in_modules(
    "entries_swapped",
    {"NAMES = {\n    'a': 1,  # one\n    'b': 2,\n}\n": ["NAMES = {\n    'a': 2,  # one\n    'b': 1,\n}\n"]},
)
