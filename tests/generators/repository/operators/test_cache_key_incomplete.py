"""`cache_key_incomplete`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "cache_key_incomplete",
    {
        "key = (a, b)": ["key = (b)", "key = (a)"],
        "cache_key = a, b, c": ["cache_key = b, c", "cache_key = a, c", "cache_key = a, b"],
        "return self._cache[a,  b]": ["return self._cache[a]", "return self._cache[b]"],
        "return memo.get((a, b))": ["return memo.get((b))", "return memo.get((a))"],
        "return (a, b) in seen": ["return (b) in seen", "return (a) in seen"],
        "pair = (a, b)": [],
        "monkey = (a, b)": [],
        "return a[b, c]": [],
    },
)
