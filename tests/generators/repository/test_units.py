"""Units of a file, and the way from a unit's text back to the file's."""

from __future__ import annotations

import ast

import pytest

from generators.repository.units import LONGEST, Segment, Unit, lines_of, units_of

TEXT = '''"""Module."""

import os

LIMIT = 3


@register(1)
class Box(Base):
    size = 1

    def __init__(self):
        self.x = []

    @property
    def area(self):
        def inner():
            return 1

        return inner()

    class Inner:
        def f(self): return 1


async def wait(a):
    return a


if LIMIT:

    def late():
        # first
        return 2  # last

    OTHER = 1
'''


def test_functions_classes_and_statements_are_units() -> None:
    found = {(unit.kind, unit.qualname, unit.first, unit.last) for unit in units_of(TEXT)}
    assert found == {
        ("module", "<module>", 5, 5),
        ("class", "Box", 8, 23),
        ("function", "Box.__init__", 12, 13),
        ("function", "Box.area", 15, 20),
        ("class", "Box.Inner", 22, 23),
        ("function", "Box.Inner.f", 23, 23),
        ("function", "wait", 26, 27),
        ("module", "<module>", 30, 36),
        ("function", "late", 32, 34),
    }


def test_a_method_knows_the_lines_of_its_class() -> None:
    owners = {unit.qualname: unit.owner for unit in units_of(TEXT) if unit.kind == "function"}
    assert owners == {
        "Box.__init__": (8, 23),
        "Box.area": (8, 23),
        "Box.Inner.f": (22, 23),
        "wait": None,
        "late": None,
    }


def _segment(name: str) -> Segment:
    return Segment(TEXT, next(unit for unit in units_of(TEXT) if unit.qualname == name))


def test_bodies_of_methods_are_left_out_of_a_class_but_for_init() -> None:
    assert _segment("Box").text == (
        "@register(1)\nclass Box(Base):\n    size = 1\n\n    def __init__(self):\n        self.x = []\n\n"
        '    @property\n    def area(self):\n        "body 0"\n\n    class Inner:\n        "body 1"\n'
    )


def test_an_indented_unit_stands_under_an_if() -> None:
    assert _segment("Box.__init__").text == "if 1:\n    def __init__(self):\n        self.x = []\n"


def test_every_unit_parses_by_itself() -> None:
    for unit in units_of(TEXT):
        ast.parse(Segment(TEXT, unit).text)


def test_a_splice_of_a_class_comes_back_with_the_bodies() -> None:
    segment = _segment("Box")
    start = segment.text.index("    @property")
    end = segment.text.index("    class Inner")
    begin, finish, new = segment.in_file(start, end, segment.text[start:end].replace("area", "field"))
    broken = TEXT[:begin] + new + TEXT[finish:]
    assert broken == TEXT.replace("def area", "def field")


@pytest.mark.parametrize(
    "line",
    [
        "__version__ = '1'",
        "import x",
        "from x import y",
        "try:\n    import x\nexcept ImportError:\n    x = None",
        "if TYPE_CHECKING:\n    X = 1",
        "if __name__ == '__main__':\n    f(1)",
        "'text'",
        "T = TypeVar('T', bound=int)",
        "log = logging.getLogger('x')",
        "A = 1; B = 2",
        "X = [\n" + "    1,\n" * LONGEST + "]",
        "X = 1\f",
        "def f(:",
    ],
)
def test_what_offers_nothing_is_no_unit(line: str) -> None:
    assert units_of(f"{line}\n") == []


def test_only_newlines_end_lines() -> None:
    text = 'X = "a\u2028b\x85c"\nY = 1\n'
    assert lines_of(text) == ['X = "a\u2028b\x85c"\n', "Y = 1\n"]
    assert [(unit.first, unit.last) for unit in units_of(text)] == [(1, 1), (2, 2)]


def test_a_text_that_has_the_word_of_a_body_is_taken_whole() -> None:
    text = 'class A:\n    x = "body 0"\n\n    def f(self):\n        return 1\n'
    assert Segment(text, Unit("class", "A", 1, 5, elided=((5, 5),))).text == text
