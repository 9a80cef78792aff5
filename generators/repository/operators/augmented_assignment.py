"""`+=` for `-=` and back, or a plain assignment in place of either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from generators.repository.operators.base import Operator, Place, is_string, spaced, swapped

PAIRS = swapped(
    [(cst.AddAssign, cst.SubtractAssign), (cst.MultiplyAssign, cst.FloorDivideAssign), (cst.BitAndAssign, cst.BitOrAssign)]
)


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.AugAssign)
    operator: Any = node.operator
    if (other := PAIRS.get(type(operator))) and not is_string(node.value):
        yield node.with_changes(operator=spaced(other, operator))
    before, after = operator.whitespace_before, operator.whitespace_after
    target = cst.AssignTarget(node.target, whitespace_before_equal=before, whitespace_after_equal=after)
    yield cst.Assign([target], node.value, semicolon=node.semicolon)


OPERATOR = Operator("augmented_assignment", (cst.AugAssign,), changes, "an assignment that updates a value")
