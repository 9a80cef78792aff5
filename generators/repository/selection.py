"""Which tests a change can reach: those that execute a line which always runs before the changed code does."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

from factory.core.syntax import parse_python
from generators.repository.coverage import Coverage

Span = tuple[int, int]
"""First and last line."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Selection:
    """The tests to run on a changed project."""

    tests: frozenset[str] | None
    """Ids; None: all."""
    risks: tuple[str, ...] = ()
    """Why all must run: `import-time`, `class body`, `module level`, `kind` (a function became a generator or a coroutine, or
    was one), `docstring` or `syntax`."""


class _All(Exception):
    """Every test can be reached."""


def select(coverage: Coverage, before: Mapping[str, str], after: Mapping[str, str]) -> Selection:
    """The tests that some change can reach; `before` holds the texts that `after` replaces.

    Tests that start processes, or whose lines tell too little, are always among them.
    """
    chosen: set[str] = set(coverage.always)
    risks: dict[str, None] = {}
    for path, text in after.items():
        if path not in before:  # nothing but another change can import it
            continue
        try:
            for spans, function in _reaching(before[path], text):
                if coverage.imports(path, *function):
                    raise _All("import-time")
                chosen |= coverage.covering(path, spans)
        except _All as why:
            risks[str(why)] = None
    return Selection(None if risks else frozenset(chosen), tuple(risks))


def _reaching(before: str, after: str) -> Iterator[tuple[list[Span], Span]]:
    """For each outermost function that differs: lines of which one runs before what differs can, and the lines of all its
    body."""
    try:
        (old, *codes), (new, *later) = _read(before), _read(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _All("syntax") from None
    codes += later
    for first, second in _changed_functions(old.body, new.body, "module level"):
        if ast.get_docstring(first) != ast.get_docstring(second):
            raise _All("docstring")
        whole = (_start(first.body[0]), _end(first))
        scopes = [found.get((_start(node), node.name)) for found, node in zip(codes, (first, second), strict=True)]
        if scopes[0] is None or scopes[1] is None or scopes[0].co_flags != scopes[1].co_flags:
            raise _All("kind")
        same_names = _names(scopes[0]) == _names(scopes[1])
        yield (list(_spans(first.body, second.body, whole)) if same_names else [whole]), whole


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[ast.Module, dict[tuple[int, str], CodeType]]:
    """The syntax tree of a module and its functions' code: one text is compared with many others."""
    return parse_python(text), _functions(compile(text, "text", "exec", dont_inherit=True))


def _changed_functions(
    old: Sequence[ast.stmt], new: Sequence[ast.stmt], level: str
) -> Iterator[tuple[FunctionNode, FunctionNode]]:
    """Pairs of functions of the same place that differ in their bodies alone; anything else that differs reaches all tests."""
    if len(old) != len(new):
        raise _All(level)
    for first, second in zip(old, new, strict=True):
        if _equal(first, second):
            continue
        if type(first) is not type(second) or not _equal_heads(first, second):
            raise _All(level)
        if isinstance(first, FunctionNode) and isinstance(second, FunctionNode):
            yield first, second
        elif isinstance(first, ast.ClassDef) and isinstance(second, ast.ClassDef):
            yield from _changed_functions(first.body, second.body, "class body")
        else:
            raise _All(level)


def _spans(old: Sequence[ast.AST], new: Sequence[ast.AST], reached: Span) -> Iterator[Span]:
    """Spans for two blocks of one function; a line of `reached` runs whenever the block is entered.

    A block runs from its top: what comes to a later difference has come to the first one.
    """
    start = 0
    while start < min(len(old), len(new)) and _equal(old[start], new[start]):
        start += 1
    if start == len(old) == len(new):
        return
    if len(old) != len(new):
        yield _span(old[start], reached) if start < len(old) else reached
        return
    for first, second in zip(old[start:], new[start:], strict=True):
        if _equal(first, second):
            continue
        if type(first) is type(second) and _is_compound(first) and _equal_heads(first, second):
            inner = _span(first, reached)
            for name in _BLOCKS:
                yield from _spans(getattr(first, name, []), getattr(second, name, []), inner)
        else:
            yield _span(first, reached)


def _is_compound(node: ast.AST) -> bool:
    return any(isinstance(getattr(node, name, None), list) for name in _BLOCKS)


def _equal(first: ast.AST, second: ast.AST) -> bool:
    return ast.dump(first) == ast.dump(second)


def _equal_heads(first: ast.AST, second: ast.AST) -> bool:
    """Whether two nodes of one type are equal but for their blocks."""
    for name, value in ast.iter_fields(first):
        if name not in _BLOCKS and _dumped(value) != _dumped(getattr(second, name)):
            return False
    return True


def _dumped(value: object) -> object:
    if isinstance(value, list):
        return [_dumped(item) for item in value]
    return ast.dump(value) if isinstance(value, ast.AST) else value


def _span(node: ast.AST, reached: Span) -> Span:
    """The lines of a statement, one of which runs when it is come to; `reached` for what has no instructions of its own."""
    if isinstance(node, (ast.Global, ast.Nonlocal, ast.Pass)):
        return reached
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return reached
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return reached
    if isinstance(node, (ast.If, ast.While)) and isinstance(node.test, ast.Constant):
        return reached
    if isinstance(node, ast.match_case):
        return reached
    return _start(node), _end(node)


def _start(node: ast.AST) -> int:
    decorators: Iterable[ast.expr] = getattr(node, "decorator_list", ())
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])  # type: ignore[attr-defined]


def _end(node: ast.AST) -> int:
    return node.end_lineno or node.lineno  # type: ignore[attr-defined, no-any-return]


def _functions(module: CodeType) -> dict[tuple[int, str], CodeType]:
    """The code objects of the functions that no function encloses, by first line (decorators included) and name."""
    found: dict[tuple[int, str], CodeType] = {}
    for code in (item for item in module.co_consts if isinstance(item, CodeType)):
        if code.co_flags & 1:  # CO_OPTIMIZED: not the body of a class
            found[code.co_firstlineno, code.co_name] = code
        else:
            found |= _functions(code)
    return found


def _names(code: CodeType) -> object:
    """Which names are local and which are not, in a function and all inside it: one assignment decides for the whole of it."""
    inner = sorted((_names(item) for item in code.co_consts if isinstance(item, CodeType)), key=repr)
    locals_ = sorted({*code.co_varnames, *code.co_cellvars})
    return (code.co_name, code.co_flags, locals_, sorted(code.co_freevars), inner)
