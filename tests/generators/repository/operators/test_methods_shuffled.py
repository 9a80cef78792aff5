"""`methods_shuffled`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

test_order_that_means_nothing = in_modules(
    "methods_shuffled",
    {
        "class A:\n    def f(self):\n        return 1\n\n    def g(self, x=1):\n        return 2\n": [],
        "class A:\n    @staticmethod\n    def f(): return 1\n\n    @property\n    def g(self): return 2\n": [],
        "class A:\n    x = 1\n    y = 2\n": [],
        'class A:\n    """Text."""\n    def f(self):\n        return 1\n': [],
    },
)
test_order_that_means_something = in_modules(
    "methods_shuffled",
    {
        "class A:\n    def f(self):\n        return 1\n    __call__ = f  # too\n": [
            "class A:\n    __call__ = f  # too\n    def f(self):\n        return 1\n"
        ],
        "class A:\n    @property\n    def x(self): return 1\n\n    # set\n    @x.setter\n    def x(self, x): pass\n": [
            "class A:\n    # set\n    @x.setter\n    def x(self, x): pass\n\n    @property\n    def x(self): return 1\n"
        ],
        "class A:\n    @on('a')\n    def f(self):\n        return 1\n\n    @on('b')\n    def g(self):\n        return 2\n": [
            "class A:\n    @on('b')\n    def g(self):\n        return 2\n\n    @on('a')\n    def f(self):\n        return 1\n"
        ],
    },
)
