"""An integer one too large or one too small."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Integer)
    if place.in_parameters or not node.value.isdigit():
        return  # defaults have an operator of their own; 0x1f, 1_000 keep their form
    value = int(node.value)
    yield node.with_changes(value=str(value + 1))
    if value > 0:
        yield node.with_changes(value=str(value - 1))


OPERATOR = Operator("constant_integer", (cst.Integer,), changes, "a number")
