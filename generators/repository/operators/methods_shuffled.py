"""Two neighbours of a class body in the wrong order, at least one of them a method.

Most orders mean the same; those that do are left out by comparing the classes, so that what remains is registration, overriding
in one body, and names that are used before they are there.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place
from generators.repository.operators.statements import exchanged

MEMBERS = (cst.FunctionDef, cst.SimpleStatementLine, cst.ClassDef)


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    if not place.in_class_body:
        return
    other = place.following(node)
    members = isinstance(other, MEMBERS) and isinstance(node, MEMBERS) and cst.FunctionDef in (type(node), type(other))
    if members and other is not None and not _bare(node) and not _bare(other):
        yield exchanged(node, other)


def _bare(node: cst.CSTNode) -> bool:
    """A docstring, `pass` or `...`."""
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(small, cst.Pass) or (isinstance(small, cst.Expr) and not isinstance(small.value, cst.Call))
        for small in node.body
    )


OPERATOR = Operator("methods_shuffled", (cst.FunctionDef, cst.SimpleStatementLine), changes, "the order of a class body")
