"""`iteration_order`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "iteration_order",
    {
        "return sorted(a)": ["return a", "return sorted(a, reverse=True)"],
        "return sorted(a, key=b)": ["return sorted(a, key=b, reverse=True)"],
        "a.sort()": ["a.sort(reverse=True)"],
        "return reversed(a)": ["return a"],
        "return a[::-1]": ["return a"],
        "return a.pop()": ["return a.pop(0)"],
        "return a.popleft()": ["return a.pop()"],
        "a.append(b)": ["a.insert(0, b)"],
        "a.insert(0, b)": ["a.append(b)"],
        "for x in range(b): g(x)": ["for x in reversed(range(b)): g(x)"],
        "return sorted(a, reverse=b)": [],
        "return a[::2]": [],
        "return range(b)": [],
        "return a.pop(b)": [],
    },
)
