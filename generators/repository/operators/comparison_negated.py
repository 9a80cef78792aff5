"""`==` for `!=`, `in` for `not in`, `is` for `is not`, and back."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, spaced, swapped

PAIRS = swapped([(cst.Equal, cst.NotEqual), (cst.In, cst.NotIn), (cst.Is, cst.IsNot)])


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if other := PAIRS.get(type(node)):
        yield spaced(other, node)


OPERATOR = Operator("comparison_negated", tuple(PAIRS), changes, "a comparison")
