"""The two sides of an operation where order matters, the wrong way round; a guard after what it guards."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from generators.repository.operators.base import Operator, Place, is_string, parenthesized

ORDERED = (cst.Subtract, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power, cst.Add)
COMPARED = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual, cst.In, cst.NotIn)
REACHES = m.Attribute() | m.Subscript() | m.Call()
"""Expressions that fail on a value that is not what they expect."""


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, ORDERED):
        if isinstance(node.operator, cst.Modulo) and is_string(node.left):
            return  # formatting
        yield node.with_changes(left=parenthesized(node.right), right=parenthesized(node.left))
    elif isinstance(node, cst.BooleanOperation):
        if _guards(node.left, node.right):
            yield node.with_changes(left=parenthesized(node.right), right=parenthesized(node.left))
    elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        target = node.comparisons[0]
        if isinstance(target.operator, COMPARED):
            yield node.with_changes(left=target.comparator, comparisons=[target.with_changes(comparator=node.left)])


def _guards(first: cst.BaseExpression, second: cst.BaseExpression) -> bool:
    """Whether the second operand uses a name of the first in a way that can fail."""
    names = {name.value for name in m.findall(first, m.Name()) if isinstance(name, cst.Name)}
    return any(
        isinstance(name, cst.Name) and name.value in names
        for reach in m.findall(second, REACHES)
        for name in m.findall(reach, m.Name())
    )


OPERATOR = Operator(
    "operands_swapped", (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison), changes, "operands in the wrong order"
)
