"""One step too many or too few in `range(...)`, at the ends of a slice and in an index by name."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, parenthesized


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.Slice):
        for field in ("lower", "upper"):
            bound = getattr(node, field)
            if bound is not None and not isinstance(bound, (cst.Integer, cst.UnaryOperation)):
                for other in _beside(bound):
                    yield node.with_changes(**{field: other})
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "range":
        for index, argument in enumerate(node.args[:2]):
            if not isinstance(argument.value, cst.Integer):
                for other in _beside(argument.value):
                    args = [*node.args]
                    args[index] = argument.with_changes(value=other)
                    yield node.with_changes(args=args)


def _beside(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    inner = value if isinstance(value, cst.BinaryOperation) else parenthesized(value)
    for operator in (cst.Add(), cst.Subtract()):
        yield cst.BinaryOperation(inner, operator, cst.Integer("1"))


OPERATOR = Operator("off_by_one", (cst.Slice, cst.Call), changes, "a bound that is off by one")
