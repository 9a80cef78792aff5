"""The condition of an `if` or a conditional expression turned round: `not` added or taken away."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, parenthesized


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    parent = place.parent
    if not isinstance(node, cst.BaseExpression) or getattr(parent, "test", None) is not node:
        return
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        yield node.expression
    elif not isinstance(node, cst.Comparison) or len(node.comparisons) > 1:  # a single comparison has operators of its own
        yield cst.UnaryOperation(
            cst.Not(), parenthesized(node) if isinstance(node, (cst.BooleanOperation, cst.NamedExpr)) else node
        )


NODES = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BooleanOperation,
    cst.UnaryOperation,
    cst.Comparison,
    cst.NamedExpr,
)
OPERATOR = Operator(
    "condition_negated", NODES, lambda node, place: changes(node, place) if _branch(place) else (), "a condition"
)


def _branch(place: Place) -> bool:
    return isinstance(place.parent, (cst.If, cst.IfExp, cst.CompIf))
