"""`entry_missing`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "entry_missing",
    {
        "return [a, b]": ["return [b]", "return [a]"],
        "return {a, b, c,}": ["return {b, c,}", "return {a, c,}", "return {a, b,}"],
        "return isinstance(a, (int, str))": ["return isinstance(a, str)", "return isinstance(a, int)"],
        "return a in ('x', 'y')": ["return a in ('y',)", "return a in ('x',)"],
        "try:\n    g(a)\nexcept (B, C, D):\n    g(b)": [
            "try:\n    g(a)\nexcept (C, D):\n    g(b)",
            "try:\n    g(a)\nexcept (B, D):\n    g(b)",
            "try:\n    g(a)\nexcept (B, C):\n    g(b)",
        ],
        "return [a]": [],
        "return a, b": [],
        "[d, e] = a": [],
    },
)
test_at_module_level = in_modules(
    "entry_missing",
    {"NAMES = {\n    'a': 1,\n    # second\n    'b': 2,\n}\n": ["NAMES = {\n    'b': 2,\n}\n", "NAMES = {\n    'a': 1,\n}\n"]},
)
