"""`attribute_swapped`: before and after."""

from __future__ import annotations

from tests.generators.repository.operators.offers import in_modules

CLASS = """class A:
    def __init__(self, name):
        self.low = 0
        self.high = 1
        self.name = name

    def first(self, x):
        {}

    def second(self, x):
        pass

    @property
    def third(self):
        pass
"""
CASES = {
    "return self.low": ["return self.high"],
    "return self.high  +  x": ["return self.low  +  x"],
    "return self.second(x)": ["return self.first(x)"],
    "return self.name": ["return self.third"],
    "return x.low": [],
    "self.low = x": [],
    "return self.unknown": [],
    "self.__init__(x)": [],
}
test_in_classes = in_modules(
    "attribute_swapped", {CLASS.format(before): [CLASS.format(text) for text in after] for before, after in CASES.items()}
)
test_outside = in_modules("attribute_swapped", {"def f(self):\n    self.a = 1\n    self.b = 1\n    return self.a\n": []})
