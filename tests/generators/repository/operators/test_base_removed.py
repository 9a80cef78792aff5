"""`base_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

test_in_classes = in_modules(
    "base_removed",
    {
        "class A(B):  # kept\n    x = 1\n": ["class A:  # kept\n    x = 1\n"],
        "class A(B, c.D):\n    pass\n": ["class A(c.D):\n    pass\n", "class A(B):\n    pass\n"],
        "class A(B, metaclass=M):\n    pass\n": ["class A(metaclass=M):\n    pass\n"],
        "class A(object):\n    pass\n": [],
        "class A(abc.ABC, Generic[T]):\n    pass\n": [],
        "class A:\n    pass\n": [],
    },
)
test_nested = in_modules(
    "base_removed",
    {
        "def f():\n    class A(B):\n        pass\n    return A\n": ["def f():\n    class A:\n        pass\n    return A\n"],
        "class O:\n    class A(B):\n        def f(self): pass\n": ["class O:\n    class A:\n        def f(self): pass\n"],
    },
)
