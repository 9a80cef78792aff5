"""Another operator of the same kind: `+` for `-`, `*` for `//`, `&` for `|`, and so on."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, is_string, spaced

OTHERS: dict[type[cst.CSTNode], type[cst.CSTNode]] = {
    cst.Add: cst.Subtract,
    cst.Subtract: cst.Add,
    cst.Multiply: cst.FloorDivide,
    cst.Divide: cst.Multiply,
    cst.FloorDivide: cst.Multiply,
    cst.Modulo: cst.FloorDivide,
    cst.BitAnd: cst.BitOr,
    cst.BitOr: cst.BitAnd,
    cst.LeftShift: cst.RightShift,
    cst.RightShift: cst.LeftShift,
}


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    operation = place.parent
    if not isinstance(operation, cst.BinaryOperation) or is_string(operation.left) or is_string(operation.right):
        return  # on strings another operator is only a type error
    if other := OTHERS.get(type(node)):
        yield spaced(other, node)


OPERATOR = Operator("arithmetic_operator", tuple(OTHERS), changes, "an arithmetic operator")
