"""Units: the parts of a file that are looked at one at a time, and their way back into the file's text.

A function or method is one unit, decorators and nested functions included; so is a class without what is inside its methods;
so is each statement at module level. In the text of a class, or of a statement with definitions in it, the bodies of functions
are left out, one word for each: what operators see stays short, and the words are put back afterwards.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from factory.core.syntax import parse_python
from generators.repository.edits import MODULE

LONGEST = 300
"""Lines of the longest statement at module level that is looked at: longer ones are generated tables."""
QUIET_CALLS = {"TypeVar", "ParamSpec", "TypeVarTuple", "NewType", "getLogger", "TypeAliasType"}
"""Calls for type checkers and logs: changes of their arguments hardly show."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Unit:
    """One part of a file."""

    kind: str
    """`function`, `class` or `module`."""
    qualname: str
    """Names of the classes around it, and its own; `<module>` at module level."""
    first: int
    """First line, decorators included."""
    last: int
    owner: tuple[int, int] | None = None
    """First and last line of the class around a function."""
    elided: tuple[tuple[int, int], ...] = ()
    """First and last lines of the bodies of functions and classes inside, which are units of their own."""


def units_of(text: str) -> list[Unit]:
    """The units of a file in the order of the text; none when it does not parse or has form feeds (which count as line ends to
    some)."""
    if "\f" in text or "\r" in text.replace("\r\n", "\n"):
        return []
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = lines_of(text)
    return [*_module(tree, lines), *_definitions(tree, "", None, lines)]


def lines_of(text: str) -> list[str]:
    """The lines as the compiler counts them, ends kept: other separators than newlines end no line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _module(tree: ast.Module, lines: list[str]) -> Iterator[Unit]:
    spans = [(_first_line(statement), statement.end_lineno or statement.lineno) for statement in tree.body]
    before = [(0, 0), *spans]
    after = [*spans[1:], (len(lines) + 1, 0)]
    for statement, (first, last), (_, ended), (begins, _) in zip(tree.body, spans, before, after, strict=False):
        alone = ended < first and last < begins  # not `a = 1; b = 2`
        if alone and last - first < LONGEST and not isinstance(statement, Definition) and not _is_quiet(statement):
            yield Unit("module", MODULE, first, last, elided=tuple(_bodies(statement, lines)))


def _is_quiet(statement: ast.stmt) -> bool:
    """Whether hardly a test sees a change of a statement: imports, texts, metadata, what is for type checkers or scripts."""
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Global)):
        return True
    if isinstance(statement, ast.Try):
        return all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in statement.body)
    if isinstance(statement, ast.If):
        return "TYPE_CHECKING" in ast.dump(statement.test) or "'__main__'" in ast.dump(statement.test)
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        dunder = all(isinstance(target, ast.Name) and target.id.startswith("__") for target in targets)
        called = statement.value.func if isinstance(statement.value, ast.Call) else None
        return dunder or (getattr(called, "attr", None) or getattr(called, "id", None)) in QUIET_CALLS
    return False


def _definitions(node: ast.AST, prefix: str, owner: tuple[int, int] | None, lines: list[str]) -> Iterator[Unit]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            first, last, name = _first_line(child), child.end_lineno or child.lineno, prefix + child.name
            if isinstance(child, ast.ClassDef):
                yield Unit("class", name, first, last, elided=tuple(_bodies(child, lines)))
                yield from _definitions(child, f"{name}.", (first, last), lines)
            else:
                yield Unit("function", name, first, last, owner)
        elif not isinstance(child, ast.expr):
            yield from _definitions(child, prefix, owner, lines)


def _bodies(node: ast.AST, lines: list[str]) -> Iterator[tuple[int, int]]:
    """First and last lines of the bodies of the definitions inside, but for `__init__`, where a class makes its attributes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            first = _first_line(child.body[0])
            line = lines[first - 1]
            apart = len(line) - len(line.lstrip()) == child.body[0].col_offset  # not `def f(): return 1`
            if child.name != "__init__" and apart:
                yield first, child.end_lineno or first
        elif not isinstance(child, ast.expr):
            yield from _bodies(child, lines)


def _first_line(statement: ast.stmt) -> int:
    decorators = statement.decorator_list if isinstance(statement, Definition) else []
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


class Segment:
    """The text of a unit as a module of its own."""

    def __init__(self, text: str, unit: Unit) -> None:
        lines = lines_of(text)
        own = lines[unit.first - 1 : unit.last]
        self.indented = own[0][:1] in (" ", "\t")  # an indented function parses by itself under an `if`
        end = "\r\n" if own[0].endswith("\r\n") else "\n"
        header = f"if 1:{end}" if self.indented else ""
        starts = [0]
        for line in lines[: unit.last]:
            starts.append(starts[-1] + len(line))
        self._begin = starts[unit.first - 1] - len(header)
        self._bodies: list[tuple[int, str, str]] = []
        """Of each body that is left out: where its word stands in the segment, the word, the body's text."""
        parts, at, length = [header], unit.first, len(header)
        for number, (first, last) in enumerate(unit.elided if '"body ' not in "".join(own) else ()):
            before = "".join(lines[at - 1 : first - 1])
            indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
            body = "".join(lines[first - 1 : last])[len(indent) :]
            end = body[len(body.rstrip("\r\n")) :]
            word = f'"body {number}"'
            length += len(before) + len(indent)
            self._bodies.append((length, word, body.removesuffix(end)))
            parts += [before, indent, word, end]
            length += len(word) + len(end)
            at = last + 1
        self.text = "".join([*parts, *lines[at - 1 : unit.last]])

    def in_file(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """A splice of the segment, which begins and ends outside bodies' words, as one of the file."""
        for _, word, body in self._bodies:
            new = new.replace(word, body)
        return self._offset(start), self._offset(end), new

    def _offset(self, position: int) -> int:
        return self._begin + position + sum(len(body) - len(word) for place, word, body in self._bodies if place < position)
