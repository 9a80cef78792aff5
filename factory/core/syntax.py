"""Syntax trees of Python source, safe to make in several threads at once."""

from __future__ import annotations

import ast
import threading
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
