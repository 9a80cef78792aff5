"""`unit_changed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_functions

test_in_functions = in_functions(
    "unit_changed",
    {
        "return a * 1000": ["return a * 1024"],
        "return a // 60 % 60": ["return a // 3600 % 60", "return a // 60 % 3600"],
        "return timedelta(hours=a, minutes=b)": ["return timedelta(hours=a, seconds=b)"],
        "return a.total_seconds()": ["return a.seconds"],
        "return math.radians(a)": ["return math.degrees(a)"],
        "return a + 1000": [],
        "return 60": [],
        "return g(seconds=a)": [],
    },
)
