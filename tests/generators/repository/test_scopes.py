"""What `self.x` may mean in a class."""

from __future__ import annotations

from generators.repository.scopes import ClassNames

TEXT = """    class A(B):
        limit = 3
        name: str = ""
        __slots__ = ()

        def __init__(self, given: Thing, other):
            self.given = given
            self.other = other
            self.items = []
            self.made = Maker(1)
            other.x = 1

        @property
        def area(self) -> int:
            return 1

        def f(self, a, b=1):
            self.limit = "x"

        def g(this, a, b=2):
            this.late = {}

        async def h(self, a, b=1):
            pass

        @staticmethod
        def s(a):
            pass
"""


def test_attributes_have_the_kind_of_their_first_value() -> None:
    assert ClassNames(TEXT).attributes == {
        "limit": "int",
        "name": "str",
        "area": "int",
        "given": "Thing",
        "other": "",
        "items": "list",
        "made": "Maker",
        "late": "dict",
    }


def test_methods_of_one_signature_are_alike() -> None:
    methods = ClassNames(TEXT).methods
    assert set(methods) == {"f", "g", "h"}
    assert methods["f"] == methods["g"] != methods["h"]


def test_a_class_that_does_not_parse_has_no_names() -> None:
    assert ClassNames("class A(:\n").attributes == {}
