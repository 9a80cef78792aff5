"""Code without its names."""

from __future__ import annotations

import ast
import builtins
import calendar
import heapq
import inspect
import io
import keyword
import random
import statistics
import subprocess
import sys
import textwrap
import tokenize
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.contamination.code import BUILTINS, tokens, tree_digest, units
from filters.contamination.planted import rename
from filters.contamination.shingles import common, shingle

SOURCE = '''
def area(width, height=2):
    """What it covers."""
    # a comment
    total = width * height + 10
    return round(total.real, "x")
'''


def test_tokens_by_hand() -> None:
    expected = "def N ( N , N = 2 ) : N = N * N + 10 return round ( N . real , S )"
    assert list(tokens(SOURCE)) == expected.split()


def test_strings_alone_on_their_lines_are_dropped_and_others_kept() -> None:
    assert list(tokens('"""doc"""\nx = "a"\n"b" + y\nz(\n"c"\n)')) == ["N", "=", "S", "S", "+", "N", "N", "(", "S", ")"]


@pytest.mark.parametrize("module", [heapq, statistics, calendar, textwrap])
def test_the_lexer_agrees_with_pythons_own(module: ModuleType) -> None:
    """Every token but strings (docstrings are dropped here), in order, against `tokenize`."""
    source = inspect.getsource(module)
    expected, after_dot = [], False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            kept = after_dot or token.string in BUILTINS or keyword.iskeyword(token.string)
            expected.append(token.string if kept else "N")
        elif token.type in (tokenize.NUMBER, tokenize.OP):
            expected.append(token.string)
        after_dot = token.string == "." if token.string.strip() else after_dot
    assert len(expected) > 500
    assert [token for token in tokens(source) if token != "S"] == expected


def test_the_list_of_builtins_is_pythons() -> None:
    assert {name for name in BUILTINS if not hasattr(builtins, name)} == {"self", "cls"}


@given(st.integers(0, 10**6))
def test_renaming_changes_neither_tree_nor_tokens(seed: int) -> None:
    renamed = rename(SOURCE, random.Random(seed))
    assert "width" not in renamed and "round" in renamed and ".real" in renamed
    [before], [after] = units(SOURCE), units(renamed)
    assert (before.tree, before.tokens) == (after.tree, after.tokens)


@pytest.mark.parametrize(
    ("old", "new"),
    [("*", "/"), ("10", "11"), (".real", ".imag"), ("round", "divmod"), ('"x"', '"y"'), ("total.real", "width.real")],
)
def test_any_other_change_changes_the_tree(old: str, new: str) -> None:
    assert units(SOURCE)[0].tree != units(SOURCE.replace(old, new, 1))[0].tree


def test_annotations_decorators_and_docstrings_do_not_count() -> None:
    annotated = SOURCE.replace("width,", "width: int,").replace("):", ") -> float:").replace("\ndef", "\n@cache\ndef")
    bare = SOURCE.replace('    """What it covers."""\n', "")
    assert units(annotated)[0].tree == units(SOURCE)[0].tree == units(bare)[0].tree


def test_which_name_is_meant_counts() -> None:
    swap = "def f(a, b):\n    c = a - b\n    return c"
    assert units(swap)[0].tree != units(swap.replace("a - b", "b - a"))[0].tree


def test_globals_imports_and_handlers_are_renamed() -> None:
    pattern = "def {0}():\n global {1}\n import os as {2}\n try:\n  {1} = {2}.getcwd()\n except OSError as {3}:\n  raise {3}"
    source, renamed = pattern.format(*"fgoe"), pattern.format(*"hkpx")
    assert units(source)[0].tree == units(renamed)[0].tree


def test_units_are_outermost_functions_and_methods() -> None:
    source = "import os\nclass A:\n def one(self):\n  def inner(): pass\n async def two(self): pass\nif os:\n def three(): pass"
    assert [unit.name for unit in units(source)] == ["one", "two", "three"]


def test_statements_without_a_function_are_one_unit_and_prose_is_none() -> None:
    assert [unit.name for unit in units("    total = 1\n    return total\n")] == [""]
    assert units("hello") == units("a sentence, of words.") == units("") == []


def test_functions_are_found_in_prose() -> None:
    second = "```\nasync def g(a,\n  b\n):\n    await a\n```\n"
    text = f"Here is how, you see:\n{textwrap.indent(SOURCE, '    ')}\nAnd so on; isn't it?\n{second}"
    found = units(text)
    assert [unit.name for unit in found] == ["area", "g"]
    assert found[0].tree == units(SOURCE)[0].tree


def test_a_docstring_that_looks_like_the_end_of_a_block() -> None:
    text = 'So:\ndef f(x):\n    """One\nline at the margin.\n    """\n    return x + 1\n\nDone, it is.'
    assert [unit.name for unit in units(text)] == ["f"]
    assert "return" in units(text)[0].tokens


@pytest.mark.parametrize(
    "text", ["def f(:\n", "\0", "def \ud800(): pass", "x = " + "-" * 5000 + "1", "(" * 5000, "def f():\n" + "'" * 3]
)
def test_hostile_text_is_no_error(text: str) -> None:
    assert isinstance(units(text), list)


def test_a_tree_too_deep_to_walk_has_tokens_and_no_digest() -> None:
    text = "def f(x):\n    return x" + " + x" * 2000
    [unit] = units(text)
    assert unit.tree is None
    assert len(unit.tokens) == 8 + 2 * 2000 and unit.tokens[-2:] == ("+", "N")


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(isinstance(token, str) for token in tokens(text))
    units(text)


def test_unrelated_functions_are_far_apart_and_renamed_ones_near() -> None:
    first, second = inspect.getsource(heapq._siftdown), inspect.getsource(heapq.nsmallest)
    one, other = (shingle(units(text)[0].tokens, 5) for text in (first, second))
    near = shingle(units(rename(first, random.Random(0)))[0].tokens, 5)
    assert common(one, other) / len(one) < 0.3
    assert common(one, near) / len(one) > 0.7


def test_digests_are_the_same_in_another_process() -> None:
    code = f"from filters.contamination.code import units; print(units({SOURCE!r})[0].tree)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert found.stdout.strip() == units(SOURCE)[0].tree


def test_tree_digest_ignores_positions() -> None:
    assert tree_digest(ast.parse("a = 1")) == tree_digest(ast.parse("\n\n  \na  =  1"))
