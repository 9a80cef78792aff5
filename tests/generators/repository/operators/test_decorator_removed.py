"""`decorator_removed`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

test_in_modules = in_modules(
    "decorator_removed",
    {
        "# above\n@first\n@second(1)\ndef f():\n    pass\n": [
            "# above\n@second(1)\ndef f():\n    pass\n",
            "# above\n@first\ndef f():\n    pass\n",
        ],
        "import x\n\n\n@x.define\nclass A:\n    y: int\n\n    @property\n    def z(self):\n        return 1\n": [
            "import x\n\n\nclass A:\n    y: int\n\n    @property\n    def z(self):\n        return 1\n",
            "import x\n\n\n@x.define\nclass A:\n    y: int\n\n    def z(self):\n        return 1\n",
        ],
        "@functools.wraps(g)\ndef f():\n    pass\n": [],
        "def f():\n    pass\n": [],
    },
)
test_nested = in_modules(
    "decorator_removed",
    {"def f():\n    @d\n    def g():\n        pass\n    return g\n": ["def f():\n    def g():\n        pass\n    return g\n"]},
)
