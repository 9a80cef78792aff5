"""Rounding the wrong way: cut off for rounded, places lost, whole division for true division and back."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, is_string, spaced, swapped, text_of

DIVISIONS = swapped([(cst.Divide, cst.FloorDivide)])


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.BinaryOperation):
        other = DIVISIONS.get(type(node.operator))
        if other is not None and not is_string(node.right):
            yield node.with_changes(operator=spaced(other, node.operator))
        return
    assert isinstance(node, cst.Call)
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    if not isinstance(name, cst.Name) or not node.args or any(argument.star for argument in node.args):
        return
    if name.value in ("ceil", "floor") and text_of(node.func) in ("math.ceil", "math.floor"):
        yield node.with_changes(func=cst.Name("round"))
    elif name is node.func and name.value == "round":
        if len(node.args) == 1:
            yield node.with_changes(func=cst.Name("int"))
        else:
            yield node.with_changes(args=[node.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
    elif name is node.func and name.value == "int" and isinstance(node.args[0].value, cst.BinaryOperation):
        yield node.with_changes(func=cst.Name("round"))


OPERATOR = Operator("rounding_changed", (cst.BinaryOperation, cst.Call), changes, "how a number is rounded")
