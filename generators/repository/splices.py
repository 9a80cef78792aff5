"""What the operators offer in the text of one unit, found in one walk of its syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst._nodes.internal import CodegenState
from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider

from generators.repository.operators import OPERATORS, Neighbours, Operator, Place
from generators.repository.scopes import ClassNames
from generators.repository.units import Segment, Unit, lines_of


@dataclass(frozen=True)
class Splice:
    """One change of a segment: `text[:start] + new + text[end:]`."""

    operator: str
    variant: int
    qualname: str
    """Names of the functions and classes around it, inside the segment."""
    start: int
    end: int
    new: str
    outside: bool
    """Whether it begins before the body of the unit's function: in its decorators or parameters."""


def splices_of(segment: Segment, unit: Unit, operators: tuple[str, ...], owner: ClassNames | None) -> Iterator[Splice]:
    """The splices of a unit; none where LibCST can not parse it."""
    text = segment.text
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return
    root = _root(module, segment.indented)
    walk = _Walk(root, unit, tuple(OPERATORS[name] for name in operators), owner)
    module.visit(walk)
    if not walk.found:
        return
    spans = _Spans(module, text)
    body = spans.of(root.body)[0] if isinstance(root, cst.FunctionDef) else 0
    for found in walk.found:
        start, end = spans.of(found.old[0])[0], spans.of(found.old[-1])[1]
        if _code(module, found.old, found.indents) == text[start:end]:  # else there is no exact place in the text
            new = _code(module, found.new, found.indents)
            yield Splice(found.operator, found.variant, found.qualname, start, end, new, start < body)


def _root(module: cst.Module, indented: bool) -> cst.CSTNode:
    """The unit's own node: below the `if` that carries an indented one."""
    first = module.body[0]
    return first.body.body[0] if indented and isinstance(first, cst.If) else first


class _Spans:
    """Offsets of nodes in a text, whitespace that belongs to them included."""

    def __init__(self, module: cst.Module, text: str) -> None:
        self._positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(WhitespaceInclusivePositionProvider)
        self._starts = [0]
        for line in lines_of(text):
            self._starts.append(self._starts[-1] + len(line))

    def of(self, node: cst.CSTNode) -> tuple[int, int]:
        span = self._positions[node]
        return self._starts[span.start.line - 1] + span.start.column, self._starts[span.end.line - 1] + span.end.column


def _code(module: cst.Module, nodes: tuple[cst.CSTNode, ...], indents: tuple[str, ...]) -> str:
    """The nodes' text where they stand: `Module.code_for_node` with the indentation of the blocks around them."""
    state = CodegenState(default_indent=module.default_indent, default_newline=module.default_newline)
    for indent in indents:
        state.increase_indent(indent)
    for node in nodes:
        node._codegen(state)
    return "".join(state.tokens)


@dataclass(frozen=True)
class _Found:
    operator: str
    variant: int
    old: tuple[cst.CSTNode, ...]
    new: tuple[cst.CSTNode, ...]
    qualname: str
    indents: tuple[str, ...]
    """Indentation of the blocks around the nodes, outermost first."""


class _Walk(cst.CSTVisitor):
    """Collects what the operators offer in one unit; types and docstrings are left alone, and so are functions and classes
    that are units of their own."""

    def __init__(self, root: cst.CSTNode, unit: Unit, operators: tuple[Operator, ...], owner: ClassNames | None) -> None:
        super().__init__()
        self.found: list[_Found] = []
        self._root, self._unit, self._owner = root, unit, owner
        self._by_type: dict[type[cst.CSTNode], list[Operator]] = {}
        for operator in operators:
            for kind in operator.nodes:
                self._by_type.setdefault(kind, []).append(operator)
        self._stack: list[cst.CSTNode] = []
        self._inside = False
        self._names: list[str] = []
        self._functions: list[cst.FunctionDef | None] = [None]
        """Whose body the walk is in, innermost last; None for class bodies, and twice for a function's head."""
        self._indents: list[str] = []
        self._default_indent = "    "

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation):
            return False
        if isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString)):
            return False
        if node is self._root:
            self._inside = True
        apart = self._unit.kind != "function" and node is not self._root and isinstance(node, (cst.FunctionDef, cst.ClassDef))
        if self._inside and not (apart and isinstance(node, cst.ClassDef)):
            self._ask(node)
        if apart:
            return False
        self._enter(node)
        return True

    def _ask(self, node: cst.CSTNode) -> None:
        operators = self._by_type.get(type(node))
        if not operators:
            return
        place = Place(tuple(self._stack), self._functions[-1], self._owner)
        qualname, indents = ".".join(self._names), tuple(self._indents)
        for operator in operators:
            for variant, change in enumerate(operator.changes(node, place)):
                pair = change if isinstance(change, Neighbours) else Neighbours((node,), (change,))
                self.found.append(_Found(operator.name, variant, pair.old, pair.new, qualname, indents))

    def _enter(self, node: cst.CSTNode) -> None:
        parent = self._stack[-1] if self._stack else None
        self._stack.append(node)
        if isinstance(node, cst.Module):
            self._default_indent = node.default_indent
        elif isinstance(node, (cst.IndentedBlock, cst.Match)):
            self._indents.append(self._default_indent if node.indent is None else node.indent)
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self._names.append(node.name.value)
            self._functions.append(node if isinstance(node, cst.FunctionDef) else None)
        elif _is_head(node, parent):
            self._functions.append(self._functions[-2])

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if not self._stack or self._stack[-1] is not original_node:
            return  # it was not entered
        self._stack.pop()
        if isinstance(original_node, (cst.IndentedBlock, cst.Match)):
            self._indents.pop()
        elif isinstance(original_node, (cst.FunctionDef, cst.ClassDef)):
            self._names.pop()
            self._functions.pop()
        elif _is_head(original_node, self._stack[-1] if self._stack else None):
            self._functions.pop()
        if original_node is self._root:
            self._inside = False

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        """Nothing is done per attribute: overriding the base's look-up makes the walk twice as fast."""

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        """See `on_visit_attribute`."""


def _is_head(node: cst.CSTNode, parent: cst.CSTNode | None) -> bool:
    """Whether a node is a part of a function that is evaluated outside it."""
    return isinstance(node, (cst.Parameters, cst.Decorator)) and isinstance(parent, cst.FunctionDef)
