"""The two sides of an operation where order matters, the wrong way round."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, is_string, parenthesized

ORDERED = (cst.Subtract, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power, cst.Add)


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, ORDERED):
        if isinstance(node.operator, cst.Modulo) and is_string(node.left):
            return  # formatting
        yield node.with_changes(left=parenthesized(node.right), right=parenthesized(node.left))
    elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        target = node.comparisons[0]
        if isinstance(
            target.operator, (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual, cst.In, cst.NotIn)
        ):
            yield node.with_changes(left=target.comparator, comparisons=[target.with_changes(comparator=node.left)])


OPERATOR = Operator("operands_swapped", (cst.BinaryOperation, cst.Comparison), changes, "operands in the wrong order")
