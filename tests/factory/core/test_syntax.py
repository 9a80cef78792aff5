"""Parsing in several threads at once."""

import ast
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from factory.core.syntax import parse_python


@pytest.fixture
def eager_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_parse_at_once_all_get_their_tree(eager_threads: None) -> None:
    source = Path(ast.__file__).read_text(encoding="utf-8")
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda _: parse_python(source), range(48)))
    assert {len(tree.body) for tree in trees} == {len(ast.parse(source).body)}


def test_a_doubtful_escape_is_no_error_even_where_warnings_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ast.unparse(parse_python(r"x = '\d'")) == r"x = '\\d'"


def test_what_is_no_python_is_told() -> None:
    with pytest.raises(SyntaxError):
        parse_python("def")


def test_only_this_module_parses_in_the_factory_itself() -> None:
    """The rule that the lock needs: nobody else calls `ast.parse` or `ast.literal_eval` where threads run."""
    root = Path(__file__).parents[3]
    callers = [
        str(path.relative_to(root))
        for room in ("factory", "generators", "filters", "registry", "sandboxes", "trainer")
        for path in (root / room).rglob("*.py")
        if "inside" not in path.parts
        and any(call in path.read_text(encoding="utf-8") for call in ("ast.parse(", "ast.literal_eval(", "PyCF_ONLY_AST"))
    ]
    assert callers == ["factory/core/syntax.py"]
