"""Python code without its names: token sequences and syntax trees that survive renaming.

A unit is an outermost function (methods one by one), or a whole snippet that holds statements but no function.
Tokens keep keywords, builtins, attributes, operators and numbers; other names become `N`, strings `S`; comments
and docstrings are gone. The lexer and the list of builtins are fixed here, so that one text gives the same
tokens under every Python.
"""

from __future__ import annotations

import ast
import keyword
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from factory.core.digest import Digest, digest_bytes
from factory.core.syntax import parse_python

LEXER = 1
"""Version of the rules of this module; part of the index digest of code shingles."""

_BUILTIN_NAMES = """
    abs all any ascii bin bool bytearray bytes callable chr classmethod complex delattr dict dir divmod enumerate
    eval exec filter float format frozenset getattr globals hasattr hash hex id input int isinstance issubclass iter len
    list locals map max memoryview min next object oct open ord pow print property range repr reversed round set setattr
    slice sorted staticmethod str sum super tuple type vars zip __import__ ArithmeticError AssertionError AttributeError
    BaseException EOFError Exception FileExistsError FileNotFoundError ImportError IndexError IOError IsADirectoryError
    KeyError KeyboardInterrupt LookupError MemoryError NameError NotImplemented NotImplementedError OSError
    OverflowError PermissionError RecursionError RuntimeError StopIteration SyntaxError TimeoutError TypeError
    UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError self cls
"""
BUILTINS = frozenset(_BUILTIN_NAMES.split())
"""Names that are kept; `self` and `cls` count as such."""

_KEYWORDS = frozenset(keyword.kwlist)
_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*|\\\r?\n)
  | (?P<string>(?:\b[rRbBuUfF]{1,2})?
      (?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<number>(?:0[xXoObB][0-9a-fA-F_]+|\d[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?|\.\d[\d_]*(?:[eE][+-]?\d+)?)[jJ]?)
  | (?P<name>[^\W\d]\w*)
  | (?P<operator>\*\*=|//=|>>=|<<=|\.\.\.|[-+*/%&|^@=!<>:]=|\*\*|//|<<|>>|->|[^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)
_HEAD = re.compile(r"^([ \t]*)(?:async[ \t]+def|def)[ \t]+\w+")
_ATTEMPTS = 4
"""How often a block that does not parse is extended (docstrings may hold lines that look like its end)."""


@dataclass(frozen=True)
class Unit:
    """One judged piece of code."""

    name: str
    tokens: tuple[str, ...]
    tree: Digest | None
    """Digest of the syntax tree with every name but builtins, attributes and keywords numbered by first use; None
    for a tree too deep to walk."""


def units(text: str) -> list[Unit]:
    """The units in `text`: parsed whole where it is Python, else function by function out of the prose around."""
    source = textwrap.dedent(text)
    module = _parse(source)
    if module is None:
        return [unit for block in _blocks(text) for unit in units_of_module(block)]
    return units_of_module(source, module)


def units_of_module(source: str, module: ast.Module | None = None) -> list[Unit]:
    """The outermost functions of Python `source`, or the whole of it when it has statements but no function."""
    module = module or _parse(source)
    if module is None:
        return []
    functions = list(_functions(module))
    if not functions and any(not isinstance(statement, ast.Expr) for statement in module.body):
        return [Unit("", tuple(tokens(source)), tree_digest(module))]
    found = []
    lines = source.split("\n")
    for function in functions:
        segment = textwrap.dedent("\n".join(lines[function.lineno - 1 : function.end_lineno]))
        found.append(Unit(function.name, tuple(tokens(segment)), tree_digest(function)))
    return found


def tokens(source: str) -> Iterator[str]:
    """Identifier-blind tokens of `source`; works on any text, parseable or not."""
    held: tuple[str, bool] | None = None  # the last token, and whether it is a string that began a line
    line, depth, after_dot = 0, 0, False
    position, last_line = 0, -1
    for match in _TOKEN.finditer(source):
        line += source.count("\n", position, match.start())
        kind, value, first = match.lastgroup, match.group(), line > last_line and depth == 0
        position = match.start()
        line_end = line + value.count("\n")
        if kind == "comment":
            continue
        if held is not None:
            # A string alone on its lines, outside brackets, is a docstring or does nothing.
            if not (held[1] and line > last_line):
                yield held[0]
            held = None
        if kind == "string":
            held = ("S", first)
        elif kind == "name":
            kept = after_dot or value in _KEYWORDS or value in BUILTINS
            held = (value if kept else "N", False)
        else:
            if value in "([{":
                depth += 1
            elif value in ")]}":
                depth = max(0, depth - 1)
            held = (value, False)
        after_dot, last_line = value == ".", line_end
    if held is not None and not held[1]:
        yield held[0]


def tree_digest(node: ast.AST) -> Digest | None:
    """Digest of an alpha-renamed tree without docstrings, annotations, decorators and positions; None when too deep."""
    parts: list[str] = []
    try:
        _write(node, {}, parts)
    except RecursionError:
        return None
    return digest_bytes("\n".join(parts).encode("utf-8", errors="backslashreplace"))


_DROPPED = frozenset({"annotation", "returns", "type_comment", "type_params", "decorator_list", "kind", "ctx"})
_RENAMED = {
    ast.Name: ("id",),
    ast.arg: ("arg",),
    ast.FunctionDef: ("name",),
    ast.AsyncFunctionDef: ("name",),
    ast.ClassDef: ("name",),
    ast.ExceptHandler: ("name",),
    ast.alias: ("asname",),
    ast.Global: ("names",),
    ast.Nonlocal: ("names",),
    ast.MatchAs: ("name",),
    ast.MatchStar: ("name",),
    ast.MatchMapping: ("rest",),
}
"""The fields that hold names that an author is free to choose."""
_BODIED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _write(node: object, names: dict[str, str], parts: list[str]) -> None:
    """Append a tree in prefix form; empty fields are left out, since their default differs by Python."""
    if isinstance(node, list):
        for item in node:
            _write(item, names, parts)
    elif not isinstance(node, ast.AST):
        parts.append(f"{type(node).__name__}:{node!r}")
    else:
        parts.append(f"({type(node).__name__}")
        renamed = _RENAMED.get(type(node), ())
        for field, value in ast.iter_fields(node):
            if field in _DROPPED or value is None or value == []:
                continue
            parts.append(field)
            if field in renamed:
                chosen = value if isinstance(value, list) else [value]
                parts += [name if name in BUILTINS else names.setdefault(name, f"n{len(names)}") for name in chosen]
            elif field == "body" and isinstance(node, _BODIED):
                _write([item for item in value if not _is_string(item)], names, parts)
            else:
                _write(value, names, parts)
        parts.append(")")


def _is_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    )


def _functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Outermost functions in the order of the source; a stack, since hostile trees are deep."""
    stack: list[ast.AST] = [module]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _parse(source: str) -> ast.Module | None:
    try:
        return parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _blocks(text: str) -> Iterator[str]:
    """Sources of the function definitions that stand in a text which as a whole is not Python."""
    lines = text.split("\n")
    start = 0
    while start < len(lines):
        head = _HEAD.match(lines[start])
        end = start + 1
        for _ in range(_ATTEMPTS if head else 0):
            end = _block_end(lines, end, head.group(1) if head else "")
            source = textwrap.dedent("\n".join(lines[start:end]))
            if _parse(source) is not None:
                yield source
                break
            end += 1
        else:
            end = start + 1
        start = end


def _block_end(lines: list[str], start: int, margin: str) -> int:
    """The first line from `start` on that is neither blank, nor deeper than `margin`, nor a closing bracket."""
    for number in range(start, len(lines)):
        body = lines[number].strip()
        deeper = len(lines[number]) - len(lines[number].lstrip()) > len(margin)
        if body and not deeper and not body.startswith((")", "]", "}")):
            return number
    return len(lines)
