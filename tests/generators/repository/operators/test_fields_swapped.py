"""`fields_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

test_in_classes = in_modules(
    "fields_swapped",
    {
        "@dataclass\nclass A:\n    # x\n    x: int\n    y: str  # y\n    z: int = 0\n": [
            "@dataclass\nclass A:\n    y: str  # y\n    # x\n    x: int\n    z: int = 0\n"
        ],
        "@attr.s(frozen=True)\nclass A:\n    x = attr.ib()\n    y = attr.ib()\n": [
            "@attr.s(frozen=True)\nclass A:\n    y = attr.ib()\n    x = attr.ib()\n"
        ],
        "class A(NamedTuple):\n    x: int = 1\n    y: int = 2\n": ["class A(NamedTuple):\n    y: int = 2\n    x: int = 1\n"],
        "class A:\n    x: int\n    y: str\n": [],
        "@dataclass\nclass A:\n    x: int\n\n    def f(self): pass\n": [],
    },
)
