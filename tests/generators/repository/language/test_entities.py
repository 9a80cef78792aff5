"""A model's function in place of the file's: what is kept, what is refused."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.repository.language.entities import Entity, Refused, entities_of, replaced

TEXT = '''import math


class Box:
    """A box."""

    # how many fit
    @property
    def room(self):
        """Places that are left."""
        # items may be None
        used = len(self.items)  # each takes one

        if used > self.size:
            return 0
        return self.size - used


def pad(text, width=8):
    lines = """
      a
    b"""
    return (
        text  # as it is
        + " " * (width - len(text))
    )


def short(a): return a
'''


def entity(name: str, text: str = TEXT) -> Entity:
    return next(one for one in entities_of("box.py", text) if one.qualname == name)


def test_entities_are_functions_whose_body_has_lines_of_its_own() -> None:
    assert [(one.qualname, one.first, one.last) for one in entities_of("box.py", TEXT)] == [
        ("Box.room", 8, 16),
        ("pad", 19, 26),
    ]
    room = entity("Box.room")
    assert room.docstring == "Places that are left."
    assert room.signature == '    @property\n    def room(self):\n        """Places that are left."""'
    assert room.class_line == "class Box:\n"
    assert entities_of("box.py", "def f(:\n") == []
    assert entities_of("box.py", 'def f():\n    """Only this."""\n') == []


def test_lines_that_stay_keep_layout_and_comments() -> None:
    """The answer is dedented, has other quotes, comments and blank lines, no docstring and no decorator."""
    answer = """
def room(self):
  used = len(self.items)
  # the bug: should be >
  if used >= self.size:  # wrong on purpose

    return 0
  return self.size-used
"""
    assert (
        replaced(entity("Box.room"), answer)
        == '''    @property
    def room(self):
        """Places that are left."""
        # items may be None
        used = len(self.items)  # each takes one

        if used >= self.size:
            return 0
        return self.size - used'''
    )


def test_an_answer_within_its_class_and_with_new_blocks() -> None:
    answer = '''
class Box:
    """A box."""

    def room(self):
        """Another text."""
        used = len(self.items)
        for item in self.items:
            if item is None:
                used -= 1
        return max(
            0,  # no less
            self.size
              - used,
        )
'''
    assert (
        replaced(entity("Box.room"), answer)
        == '''    @property
    def room(self):
        """Places that are left."""
        # items may be None
        used = len(self.items)  # each takes one

        for item in self.items:
            if item is None:
                used -= 1
        return max(
            0,
            self.size
              - used,
        )'''
    )


def test_strings_of_several_lines_are_not_shifted() -> None:
    answer = 'def pad(text, width=8):\n  lines = """\n      a\n    c"""\n  return text + " " * (width - len(text))\n'
    assert replaced(entity("pad"), answer) == (
        'def pad(text, width=8):\n    lines = """\n      a\n    c"""\n    return text + " " * (width - len(text))'
    )


def test_the_same_function_otherwise_laid_out_changes_nothing() -> None:
    answer = "def pad(text, width=8):\n\tlines = '''\n      a\n    b'''\n\treturn (text\n+ ' ' * (width - len(text)))\n"
    assert replaced(entity("pad"), answer) == entity("pad").text


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def pad(text, width=8:\n    return text\n", "does not parse"),
        ("def pad(text, width=8):\nreturn text\n", "does not parse"),
        ("def pad(text, width=8):\n    return text\x00\n", "does not parse"),
        ("def trim(text, width=8):\n    return text\n", "not the function"),
        ("def pad(text, width=8):\n    return 1\n\ndef pad(text, width=8):\n    return 2\n", "not the function"),
        ("import os\n\ndef pad(text, width=8):\n    return os.sep\n", "more than the function"),
        ("def pad(text, width=8):\n    return help(text)\n\ndef help(a):\n    return a\n", "more than the function"),
        ("def pad(text, length=8):\n    return text\n", "signature"),
        ("def pad(text, *width):\n    return text\n", "signature"),
        ("async def pad(text, width=8):\n    return text\n", "signature"),
        ('def pad(text, width=8):\n    """Pads."""\n', "no body"),
        ("def pad(text, width=8): return text\n", "no body"),
        ("class Box:\n    def pad(text, width=8):\n        return text\n", "not the function"),
    ],
)
def test_what_is_refused(code: str, reason: str) -> None:
    found = replaced(entity("pad"), code)
    assert isinstance(found, Refused)
    assert found.reason == reason


EXPRESSIONS = st.sampled_from(["a", "a + b", "[a,\n   b]", "f(a)  # why", '"x\'"', "not a", "a[1:]"])
SIMPLE = st.one_of(
    EXPRESSIONS.map(lambda value: [f"a = {line}" if not number else line for number, line in enumerate(value.split("\n"))]),
    st.just(["# a note", "b += 1"]),
    st.just(["", "g(a)"]),
    st.just(["pass"]),
)
HEADS = st.sampled_from(["if a:", "for b in a:", "while a:  # loop", "with a as b:", "try:\n    pass\nfinally:"])


def block(head: str, bodies: list[list[str]], unit: str) -> list[str]:
    return [*head.split("\n"), *(f"{unit}{line}" for lines in bodies for line in lines)]


def bodies(unit: str) -> st.SearchStrategy[list[list[str]]]:
    statement = st.recursive(
        SIMPLE, lambda inner: st.builds(block, HEADS, st.lists(inner, min_size=1, max_size=3), st.just(unit)), max_leaves=6
    )
    return st.lists(statement, min_size=1, max_size=4)


def function(parts: list[list[str]], unit: str) -> str:
    lines = ["def f(a, b):", *(f"{unit}{line}" if line else "" for part in parts for line in part)]
    return "\n".join(lines).rstrip() + "\n"


@settings(max_examples=150, deadline=None)
@given(bodies("    "), bodies("  "), st.booleans())
def test_the_result_is_the_answers_function_whatever_the_layout(
    old: list[list[str]], new: list[list[str]], method: bool
) -> None:
    text = function(old, "    ")
    if method:
        text = "class C:\n" + textwrap.indent(text, "    ")
    answer = function(new, "  ")
    [found] = entities_of("c.py", text)
    made = replaced(found, answer)
    assert isinstance(made, str)
    assert ast.dump(ast.parse(textwrap.dedent(made))) == ast.dump(ast.parse(answer))


@settings(max_examples=50, deadline=None)
@given(bodies("    "))
def test_an_answer_without_comments_and_in_another_style_changes_nothing(parts: list[list[str]]) -> None:
    [found] = entities_of("c.py", function(parts, "    "))
    assert replaced(found, ast.unparse(ast.parse(found.text))) == found.text
