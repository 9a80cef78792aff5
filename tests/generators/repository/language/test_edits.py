"""Answers and the edits that they make."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.agent.endpoint import Answer
from generators.repository.language.edits import Asked, LanguageEdit, blocks, edit_of
from generators.repository.language.entities import Entity, Refused, entities_of

TEXT = '''"""Sums."""


def total(items):
    """The sum of the prices."""
    # start at nothing
    amount = 0
    for item in items:
        amount += item.price  # in cents
    return amount


def mean(items):
    return total(items) / len(items)
'''
ASKED = Asked(operator="language_modify", prompt="modify-1", what="a boundary")


def answer(text: str, finish: str = "stop") -> Answer:
    return Answer(text=text, finish=finish, prompt_tokens=1, completion_tokens=9, request="ab" * 32, model="writer")


def entity(name: str = "total", text: str = TEXT) -> Entity:
    return next(one for one in entities_of("shop/sums.py", text) if one.qualname == name)


def fenced(code: str) -> str:
    return f"Kind: boundary\n\n```python\n{code}```\nThat is all.\n"


def test_an_edit_is_the_smallest_splice_and_says_where_it_comes_from() -> None:
    code = "def total(items):\n    amount = 0\n    for item in items[1:]:\n        amount += item.price\n    return amount\n"
    edit = edit_of(entity(), TEXT, answer(fenced(code)), ASKED)
    assert isinstance(edit, LanguageEdit)
    assert edit.applied(TEXT) == TEXT.replace("in items:", "in items[1:]:")
    assert (TEXT[edit.start : edit.end], edit.new) == ("", "[1:]")
    assert (edit.line, edit.qualname, edit.function, edit.one_line) == (8, "total", (4, 10), True)
    assert edit.site == "shop/sums.py:8:total"
    assert (edit.operator, edit.what) == ("language_modify", "a boundary")
    assert edit.parameters == {"model": "writer", "prompt": "modify-1", "request": "ab" * 32}


def test_a_change_of_several_lines_leaves_the_file_around_it() -> None:
    code = "def total(items):\n    return sum(item.price for item in items if item.price)\n"
    edit = edit_of(entity(), TEXT, answer(fenced(code)), ASKED)
    assert isinstance(edit, LanguageEdit)
    assert not edit.one_line
    broken = edit.applied(TEXT)
    assert broken.startswith('"""Sums."""\n\n\ndef total(items):\n    """The sum of the prices."""\n')
    assert broken.endswith("    return total(items) / len(items)\n")
    assert "sum(item.price" in broken
    assert "amount" not in broken


def test_line_ends_of_the_file_are_kept() -> None:
    text = TEXT.replace("\n", "\r\n")
    code = "def total(items):\n    amount = 0\n    for item in items:\n        amount = item.price\n    return amount\n"
    edit = edit_of(entity(text=text), text, answer(fenced(code)), ASKED)
    assert isinstance(edit, LanguageEdit)
    assert edit.applied(text) == TEXT.replace("amount += item.price  # in cents", "amount = item.price").replace("\n", "\r\n")
    several = "def total(items):\n    amount = 0\n    for item in items:\n        amount += 1\n        amount += 2\n"
    edit = edit_of(entity(text=text), text, answer(fenced(several)), ASKED)
    assert isinstance(edit, LanguageEdit)
    assert edit.applied(text).replace("\r\n", "").count("\n") == 0


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("I can not do that.", "no code"),
        (fenced("def mean(items):\n    return 0\n"), "no code"),
        (fenced("def total(items:\n    return 0\n"), "does not parse"),
        (fenced("def total(items):\n    return return\n"), "does not parse"),
        (fenced("def total(items):\n    yield from\n"), "does not parse"),
        (fenced("def total(items):\n    break\n"), "does not parse"),
        (fenced("def total(things):\n    return 0\n"), "signature"),
        (fenced(ast.unparse(ast.parse(TEXT).body[1]) + "\n"), "equal"),
        (
            fenced(
                "def total(items):\n    amount = 1 - 1\n    for item in items:\n        amount += item.price\n"
                "    return amount\n"
            ),
            "equivalent",
        ),
    ],
)
def test_what_is_refused(said: str, reason: str) -> None:
    found = edit_of(entity(), TEXT, answer(said), ASKED)
    assert isinstance(found, Refused)
    assert found.reason == reason


def test_an_answer_that_was_cut_off() -> None:
    found = edit_of(entity(), TEXT, answer(fenced("def total(items):\n    return 0\n"), finish="length"), ASKED)
    assert isinstance(found, Refused)
    assert found.reason == "cut off"


def test_which_block_counts() -> None:
    first, last = "def total(items):\n    return 1\n", "def total(items):\n    return 2\n"
    thought = f"<think>```python\n{first}```</think>"
    for said in (
        f"{fenced(first)}\nBetter:\n{fenced(last)}",
        f"{thought}{fenced(last)}",
        f"{fenced(last)}```text\nreturn 3\n```",
        f"~~~~py\n{last}~~~~\n",
        f"  ```\n{last}  ```\n",
        last,
    ):
        edit = edit_of(entity(), TEXT, answer(said), ASKED)
        assert isinstance(edit, LanguageEdit), said
        assert "return 2" in edit.applied(TEXT)


@settings(deadline=None)
@given(st.text())
def test_any_text_has_blocks_or_none(text: str) -> None:
    assert all(isinstance(block, str) for block in blocks(text))


LINES = st.lists(st.text("abc =()#`~:\"'", max_size=12).filter(lambda line: not line.strip().startswith(("`", "~"))))


@settings(deadline=None)
@given(LINES, LINES, st.sampled_from(["```", "````", "~~~"]), st.sampled_from(["", "python", "py title=x"]))
def test_a_fenced_block_comes_out_as_it_went_in(code: list[str], prose: list[str], fence: str, language: str) -> None:
    inner = "".join(f"{line}\n" for line in code)
    around = "".join(f"{line}\n" for line in prose)
    assert blocks(f"{around}{fence}{language}\n{inner}{fence}\n{around}") == [inner]
