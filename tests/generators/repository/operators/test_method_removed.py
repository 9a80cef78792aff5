"""`method_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

test_in_classes = in_modules(
    "method_removed",
    {
        "class A:\n    def f(self):\n        return 1\n\n    # about g\n    def g(self):\n        return 2\n": [
            "class A:\n\n    # about g\n    def g(self):\n        return 2\n",
            "class A:\n    def f(self):\n        return 1\n",
        ],
        "class A(B):\n    @property\n    def f(self):\n        return 1\n": ["class A(B):\n    pass\n"],
        "class A:\n    @typing.overload\n    def f(self): ...\n": [],
        "def f():\n    def g():\n        pass\n": [],
    },
)
