"""`key_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "key_swapped",
    {
        "return a['x'], a['y']": ["return a['y'], a['y']", "return a['x'], a['x']"],
        "a['x'] = b.get('y', 1)\na['z'] = 2": ["a['z'] = b.get('y', 1)\na['z'] = 2", "a['x'] = b.get('y', 1)\na['x'] = 2"],
        "return a['x'], b['y']": [],
        "return a[0], a[1]": [],
    },
)
