"""Syntax trees of Python source, safe to make in several threads at once."""

from __future__ import annotations

import ast
import threading
import types
import warnings

_LOCK = threading.Lock()


def parse_python(source: str) -> ast.Module:
    """`ast.parse` of one module, silent about escapes that the compiler dislikes.

    CPython 3.11 counts the depth of the tree that it converts once per interpreter: two threads that parse at the same
    time make each other fail with `SystemError: AST constructor recursion depth mismatch`. Here they take turns.
    Raises SyntaxError, ValueError (NUL characters), RecursionError or MemoryError (nested too deeply).
    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def compile_python(tree: ast.Module) -> types.CodeType:
    """The code of a module's syntax tree, silent about comparisons that the compiler dislikes; in turns, as above.

    Raises SyntaxError (what a tree can not tell: `return` at module level), ValueError, RecursionError or MemoryError.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(tree, "module", "exec", dont_inherit=True)
