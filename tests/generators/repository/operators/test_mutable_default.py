"""`mutable_default`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

BEFORE = "def f(a, b = None):\n    if b is None:\n        b = {}\n    b[a] = 1\n    return b\n"
test_in_modules = in_modules(
    "mutable_default",
    {
        BEFORE: [BEFORE.replace("= None", "= {}")],
        BEFORE.replace("{}", "[]"): [BEFORE.replace("= None", "= []").replace("{}", "[]")],
        "async def f(*, a: list | None=None):\n    if a is None: a = list()\n    return a\n": [
            "async def f(*, a: list | None=list()):\n    if a is None: a = list()\n    return a\n"
        ],
        "def f(a=None):\n    if a is None:\n        a = 1\n    return a\n": [],
        "def f(a=None):\n    if a is None:\n        g()\n    return a\n": [],
        "def f(a=[]):\n    return a\n": [],
    },
)
