"""`-x` becomes `x`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.UnaryOperation)
    if isinstance(node.operator, (cst.Minus, cst.BitInvert)) and not place.in_parameters:
        yield node.expression


OPERATOR = Operator("sign_dropped", (cst.UnaryOperation,), changes, "a missing sign")
