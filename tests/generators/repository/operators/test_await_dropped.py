"""`await_dropped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

test_in_functions = in_modules(
    "await_dropped",
    {
        "async def f(a):\n    return await a.read(1)  # kept\n": ["async def f(a):\n    return a.read(1)  # kept\n"],
        "async def f(a):\n    (await a)\n": ["async def f(a):\n    (a)\n"],
        "async def f(a):\n    async for b in a:\n        pass\n": [],
    },
)
