"""`sign_dropped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions, in_modules

test_in_functions = in_functions(
    "sign_dropped", {"return -a": ["return a"], "return ~a": ["return a"], "return +a": [], "return not a": []}
)
test_at_module_level = in_modules("sign_dropped", {"LOW = -X\n": ["LOW = X\n"], "def f(a=-1):\n    pass\n": []})
