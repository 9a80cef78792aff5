"""Evidence: what failing tests show of a bug, as a user could have met it."""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from factory.core.syntax import parse_python
from generators.repository.runs import Failure

STATEMENT = 400
"""Longest quoted statement, characters."""
MESSAGE = 240
"""Longest quoted message, characters."""
SETUP = 200
"""Longest quoted statements before it, characters together."""
SETUP_LINES = 4
"""Most quoted lines before it."""
SHORT = 120
"""Longest statement of a further failure, characters; it has one line."""
OTHERS = 2
"""Most further failures that are quoted."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Evidence:
    """One failure that shows the bug: what was run, and how it failed."""

    statement: str
    type: str
    message: str
    setup: str = ""
    """Statements before it that make the names it uses; empty when there are none or more than can be quoted."""
    alone: bool = False
    """Whether setup and statement say where every name of theirs comes from: a session of their own shows the same."""
    others: tuple[Evidence, ...] = ()
    """Further failures with other statements or messages, short ones."""

    @property
    def error(self) -> str:
        """Type and message, as Python prints them."""
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def text(self) -> str:
        """All that it shows."""
        parts = [self.setup, self.statement, self.error, *(other.text for other in self.others)]
        return "\n".join(part for part in parts if part)


def evidence(failures: Sequence[Failure], tests: Mapping[str, str]) -> Evidence | None:
    """The shortest readable failure with the next ones; `tests` are the test files by path. None when no failure passed
    through a test's file."""
    found = []
    for failure in failures:
        text = tests.get(failure.file, "")
        statement = statement_at(text, failure.line)
        if statement and len(statement) <= STATEMENT:
            setup, alone = setup_of(text, failure.line)
            found.append(Evidence(statement, failure.type, _readable(failure.message), setup, alone))
    found.sort(key=lambda one: (not one.message, len(one.statement) + len(one.message), one.statement, one.message))
    if not found:
        return None
    return replace(found[0], others=tuple(_others(found))[:OTHERS])


def _others(found: Sequence[Evidence]) -> Iterator[Evidence]:
    """Failures after the first that say something new in one line."""
    said = {(found[0].statement, found[0].message)}
    for one in found[1:]:
        first = one.message.split("\n")[0]
        if (one.statement, one.message) not in said and "\n" not in one.statement and len(one.statement) <= SHORT:
            said.add((one.statement, one.message))
            yield Evidence(one.statement, one.type, first if len(first) <= SHORT else "")


def statement_at(text: str, line: int) -> str:
    """The smallest statement of a file that covers a line, dedented; of a compound one as far as that line, of a `with` whose
    own line it is all of it (`raises`); empty when none."""
    best = _innermost(text, line)
    if best is None or isinstance(best, (*_FUNCTIONS, ast.ClassDef)):
        return ""
    whole = not hasattr(best, "body") or isinstance(best, (ast.With, ast.AsyncWith))
    last = (best.end_lineno or line) if whole else line
    return _lines(text, best.lineno, last)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _innermost(text: str, line: int) -> ast.stmt | None:
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return None
    best: ast.stmt | None = None
    for node in ast.walk(tree):
        covers = isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
        if isinstance(node, ast.stmt) and covers and (best is None or node.lineno >= best.lineno):
            best = node
    return best


def _lines(text: str, first: int, last: int) -> str:
    return textwrap.dedent("\n".join(text.split("\n")[first - 1 : last])).strip()


def setup_of(text: str, line: int) -> tuple[str, bool]:
    """Statements of the test before a line that make the names which its statement uses, and whether these, the file's
    imports and definitions, and builtins are all that it needs."""
    best = _innermost(text, line)
    if best is None:
        return "", False
    tree = parse_python(text)
    function = next((node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and _covers(node, line)), None)
    needed = _loaded(best)
    chosen: list[ast.stmt] = []
    for node in reversed(_before(function.body if function else tree.body, best.lineno)):
        if _makes(node) & needed or (isinstance(node, ast.Expr) and _roots(node) & needed):
            chosen.insert(0, node)
            needed |= _loaded(node)
    made = {name for node in chosen for name in _makes(node)} | _imported(tree) | set(dir(builtins))
    lines = [_lines(text, node.lineno, node.end_lineno or node.lineno) for node in chosen]
    setup = "\n".join(lines)
    if len(setup) > SETUP or setup.count("\n") >= SETUP_LINES:
        return "", False
    alone = needed <= made
    return (setup, True) if alone else ("", False)


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _before(body: Sequence[ast.stmt], line: int) -> list[ast.stmt]:
    """Statements that end before a line: those of this block, and of the blocks of `with` statements around the line."""
    found = []
    for node in body:
        if (node.end_lineno or 0) < line:
            found.append(node)
        elif isinstance(node, ast.With) and _covers(node, line):
            found += _before(node.body, line)
    return found


def _loaded(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _makes(node: ast.stmt) -> set[str]:
    """Names that a plain assignment or an import binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return set()


def _roots(node: ast.Expr) -> set[str]:
    """Names whose methods a statement calls: `box` of `box.add(3)`."""
    if not isinstance(node.value, ast.Call):
        return set()
    inner: ast.expr = node.value.func
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
    return {inner.id} if isinstance(inner, ast.Name) else set()


def _imported(tree: ast.Module) -> set[str]:
    """Names that the file imports at its top."""
    return {name for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) for name in _makes(node)}


def _readable(message: str) -> str:
    """The head of a message."""
    lines = [line.rstrip() for line in message.strip().split("\n") if line.strip()][:4]
    short = "\n".join(lines)
    return short if len(short) <= MESSAGE else short[:MESSAGE] + "..."
