"""`and` for `or`, and back."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, spaced, swapped

PAIRS = swapped([(cst.And, cst.Or)])


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if other := PAIRS.get(type(node)):
        yield spaced(other, node)


OPERATOR = Operator("boolean_operator", tuple(PAIRS), changes, "a logical operator")
