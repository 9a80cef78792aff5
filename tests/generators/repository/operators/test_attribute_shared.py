"""`attribute_shared`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

test_in_classes = in_modules(
    "attribute_shared",
    {
        'class A:\n    """Text."""\n\n    def __init__(self, x):\n        self.x = x\n        self.items = []  # all\n': [
            'class A:\n    """Text."""\n    items = []\n\n    def __init__(self, x):\n        self.x = x\n'
        ],
        "class A:\n    def __init__(self):\n        self.items: dict = {}\n\n    def get(self):\n        return 1\n": [
            "class A:\n    items: dict = {}\n    def __init__(self):\n        pass\n\n    def get(self):\n        return 1\n"
        ],
        "class A:\n    def __init__(self):\n        self.items = [0]\n        self.size = 0\n": [],
        "class A:\n    def reset(self):\n        self.items = []\n": [],
    },
)
