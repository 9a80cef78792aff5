"""`<` for `<=`, `>` for `>=`, and back."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, spaced, swapped

PAIRS = swapped([(cst.LessThan, cst.LessThanEqual), (cst.GreaterThan, cst.GreaterThanEqual)])


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if other := PAIRS.get(type(node)):
        yield spaced(other, node)


OPERATOR = Operator("comparison_boundary", tuple(PAIRS), changes, "the boundary of a comparison")
