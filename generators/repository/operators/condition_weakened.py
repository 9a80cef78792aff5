"""One operand of an `and` or `or` left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.BooleanOperation):
        for kept in (node.left, node.right):
            if node.lpar and not kept.lpar:
                yield kept.with_changes(lpar=node.lpar, rpar=node.rpar)
            else:
                yield kept


OPERATOR = Operator("condition_weakened", (cst.BooleanOperation,), changes, "a missing part of a condition")
