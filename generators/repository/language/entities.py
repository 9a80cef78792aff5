"""Functions as a language model is shown them, and as its answer is put in their place."""

from __future__ import annotations

import ast
import difflib
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from factory.core.syntax import parse_python
from generators.repository.language.logical import HEADER, Logical, logical_lines
from generators.repository.sites import functions_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_BROKEN = (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError)
"""What parsing something that is no Python raises."""


@dataclass(frozen=True)
class Entity:
    """One outermost function or method of a file. Lines end in LF here, whatever the file's ends are."""

    path: str
    qualname: str
    first: int
    """First line, decorators included, from 1."""
    last: int
    text: str
    """Its lines as they stand, indentation included, without the last line's end."""

    @property
    def name(self) -> str:
        return self.qualname.rpartition(".")[2]

    @property
    def lines(self) -> int:
        return self.last - self.first + 1

    @cached_property
    def node(self) -> FunctionNode:
        """Its syntax tree; positions are those of `text`, under `HEADER` where it is indented."""
        tree = parse_python((HEADER if self.text[:1] in (" ", "\t") else "") + self.text)
        return next(node for node in ast.walk(tree) if isinstance(node, FunctionNode))

    @cached_property
    def logical(self) -> list[Logical]:
        return logical_lines(self.text)

    @cached_property
    def head(self) -> int:
        """How many logical lines are decorators, signature and docstring; 0 where signature and body share one."""
        return _head(self.logical, self.node)

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.node) or ""

    @property
    def signature(self) -> str:
        """Its physical lines down to the end of the signature and docstring."""
        return "\n".join(line for one in self.logical[: self.head] for line in (*one.lead, *one.code))

    @property
    def class_line(self) -> str:
        """The line that a method stands under; empty for a function."""
        owner = self.qualname.rpartition(".")[0].rpartition(".")[2]
        return f"class {owner}:\n" if owner and self.text[:1] in (" ", "\t") else ""

    def interface(self) -> str:
        """What callers rely on."""
        return interface(self.node)


def entities_of(path: str, text: str) -> list[Entity]:
    """The outermost functions of a file whose body begins on a line of its own."""
    lines = text.replace("\r\n", "\n").split("\n")
    found = []
    for function in functions_of(text):
        own = "\n".join(lines[function.first - 1 : function.last])
        entity = Entity(path, function.qualname, function.first, function.last, own)
        try:
            usable = 0 < entity.head < len(entity.logical)
        except (*_BROKEN, StopIteration):
            continue  # it does not stand by itself: a decorator or body shares a line with other code
        if usable:
            found.append(entity)
    return found


def interface(node: FunctionNode) -> str:
    """Kind and names of a function's parameters and its own kind and name: defaults and annotations are no part of it."""
    arguments = node.args
    parts: list[object] = [type(node).__name__, node.name]
    for group in (arguments.posonlyargs, arguments.args, arguments.kwonlyargs):
        parts.append([one.arg for one in group])
    parts += [one.arg if one else None for one in (arguments.vararg, arguments.kwarg)]
    return repr(parts)


def _head(logical: Sequence[Logical], node: FunctionNode) -> int:
    """How many of the logical lines of a function come before its body proper."""
    count = len(node.decorator_list) + 1
    if len(logical) <= count or logical[count].depth <= logical[count - 1].depth:
        return 0
    return count + (ast.get_docstring(node, clean=False) is not None)


@dataclass(frozen=True)
class Refused:
    """Why an answer makes no edit."""

    reason: str
    """From a closed list, so that reasons can be counted."""
    detail: str = ""


def replaced(entity: Entity, code: str) -> str | Refused:
    """`entity.text` with the body that an answer's code gives it.

    Signature, decorators and docstring stay. Logical lines that the answer leaves as they are keep their layout and
    comments; lines that replace others take over the comments above them; comments of the answer's own are dropped.
    """
    answered = _answered(entity, code)
    if isinstance(answered, Refused):
        return answered
    node, lines = answered
    if interface(node) != entity.interface():
        return Refused("signature", interface(node)[:200])
    head = _head(lines, node)
    if not head or head >= len(lines):
        return Refused("no body")
    return "\n".join([entity.signature, *_merged(entity, lines[head:])])


def _answered(entity: Entity, code: str) -> tuple[FunctionNode, list[Logical]] | Refused:
    """The function that an answer gives, and its logical lines."""
    code = code.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    header = HEADER if code[:1] in (" ", "\t") else ""
    try:
        tree = parse_python(header + code)
    except _BROKEN as error:
        return Refused("does not parse", str(error)[:200])
    statements = tree.body[0].body if header and isinstance(tree.body[0], ast.If) else tree.body
    owners = [node for node in statements if isinstance(node, ast.ClassDef)]
    if entity.class_line and len(statements) == len(owners) == 1:
        statements = owners[0].body
    functions = [node for node in statements if isinstance(node, FunctionNode) and node.name == entity.name]
    if len(functions) != 1:
        return Refused("not the function", f"{len(functions)} of that name")
    others = [node for node in statements if node is not functions[0] and not _is_text(node)]
    if others:
        return Refused("more than the function", type(others[0]).__name__)
    (node,) = functions
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    rows = (header + code).split("\n")[first - 1 : node.end_lineno]
    try:
        return node, logical_lines("\n".join(rows))
    except _BROKEN as error:
        return Refused("does not parse", str(error)[:200])


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _merged(entity: Entity, body: Sequence[Logical]) -> list[str]:
    """Physical lines of the new body."""
    old = entity.logical[entity.head :]
    indents, shift = _indents(entity.logical), old[0].depth - body[0].depth
    own = {text for one in entity.logical for text in one.said}
    before = [(one.depth, one.key) for one in old]
    after = [(one.depth + shift, one.key) for one in body]
    lines: list[str] = []
    for tag, start, end, first, last in difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [line for one in old[start:end] for line in (*one.lead, *one.code)]
            continue
        for offset, one in enumerate(body[first:last]):
            indent = _indent(indents, one.depth + shift)
            if start + offset < end:
                lines += old[start + offset].lead
            lines += _laid_out(one, indent, own)
    return lines


def _indents(logical: Sequence[Logical]) -> dict[int, str]:
    """The indentation in use at each depth."""
    found: dict[int, str] = {}
    for one in logical:
        found.setdefault(one.depth, one.indent)
    return found


def _indent(known: dict[int, str], depth: int) -> str:
    """The indentation at a depth; below what is in use, each block adds as much as the last one in use."""
    if depth in known:
        return known[depth]
    deepest = max(level for level in known if level < depth)
    unit = known[deepest].removeprefix(known[deepest - 1]) if deepest - 1 in known else "    "
    return known[deepest] + unit * (depth - deepest)


def _laid_out(one: Logical, indent: str, own: set[str]) -> list[str]:
    """A logical line of the answer in the file's indentation, without comments that the file does not have."""
    was = one.indent
    dropped = {row: column for row, column, text in one.comments if text not in own}
    lines = []
    for row, line in enumerate(one.code):
        if row in dropped:
            line = line[: dropped[row]].rstrip()
            if not line and row:
                continue
        if row not in one.inner and line.strip():
            line = indent + (line[len(was) :] if line.startswith(was) else line.lstrip())
        lines.append(line)
    return lines
