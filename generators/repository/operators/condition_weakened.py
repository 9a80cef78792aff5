"""One operand of an `and` or `or` left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, in_parentheses_of


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.BooleanOperation)
    for kept in (node.left, node.right):
        yield in_parentheses_of(node, kept)


OPERATOR = Operator("condition_weakened", (cst.BooleanOperation,), changes, "a missing part of a condition")
