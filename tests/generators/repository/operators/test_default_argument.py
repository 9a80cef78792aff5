"""`default_argument`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

BEFORE = "def f(a=1, *, b = False, c='x'):\n    return a, b, c\n"
test_in_modules = in_modules(
    "default_argument",
    {
        BEFORE: [BEFORE.replace("a=1", "a=2"), BEFORE.replace("False", "True"), BEFORE.replace("'x'", "''")],
        "def f(a, b=None, c='', *d):\n    pass\n": [],
        "async def f(a=0):\n    pass\n": ["async def f(a=1):\n    pass\n"],
    },
)
