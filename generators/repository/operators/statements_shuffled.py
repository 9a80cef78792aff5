"""Two neighbouring statements that depend on each other in the wrong order."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place
from generators.repository.operators.statements import exchanged

ENDS = (cst.Return, cst.Raise, cst.Break, cst.Continue, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal, cst.Pass)
COMPOUND = (cst.If, cst.For, cst.While, cst.With, cst.Try)
COMMON = {"self", "cls", "None", "True", "False"}


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    other = place.following(node)
    if other is None or place.in_class_body or not _moves(node) or not _moves(other):
        return
    first, second = _Names(node), _Names(other)
    if (first.calls and second.calls) or first.stored & second.all or second.stored & first.all:
        yield exchanged(node, other)


def _moves(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return isinstance(statement, COMPOUND)
    if len(statement.body) != 1:
        return False
    small = statement.body[0]
    bare_string = isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))
    return not isinstance(small, ENDS) and not bare_string


class _Names(cst.CSTVisitor):
    """The names in a statement, attributes' own names among them; which of them it stores to; whether it calls anything."""

    def __init__(self, statement: cst.CSTNode) -> None:
        super().__init__()
        self.all: set[str] = set()
        self.stored: set[str] = set()
        self.calls = False
        statement.visit(self)

    def visit_Name(self, node: cst.Name) -> None:
        if node.value not in COMMON:
            self.all.add(node.value)

    def visit_Call(self, node: cst.Call) -> None:
        self.calls = True

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._store(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._store(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._store(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._store(node.target)

    def _store(self, target: cst.CSTNode) -> None:
        """The name that is stored to: of `self.x` it is `x`, of `d[k]` it is `d`, of a tuple all of them."""
        if isinstance(target, cst.Attribute):
            self._store(target.attr)
        elif isinstance(target, cst.Subscript):
            self._store(target.value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._store(element.value)
        elif isinstance(target, cst.Name):
            self.stored.add(target.value)


OPERATOR = Operator("statements_shuffled", (cst.SimpleStatementLine, *COMPOUND), changes, "the order of two statements")
