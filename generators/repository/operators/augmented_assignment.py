"""`+=` for `-=` and back, or a plain assignment in place of either."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, is_string, swapped

PAIRS = swapped(
    [(cst.AddAssign, cst.SubtractAssign), (cst.MultiplyAssign, cst.FloorDivideAssign), (cst.BitAndAssign, cst.BitOrAssign)]
)


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.AugAssign)
    operator = node.operator
    space = {"whitespace_before": operator.whitespace_before, "whitespace_after": operator.whitespace_after}
    if (other := PAIRS.get(type(operator))) and not is_string(node.value):
        yield node.with_changes(operator=other(**space))  # type: ignore[arg-type]
    target = cst.AssignTarget(
        node.target, whitespace_before_equal=operator.whitespace_before, whitespace_after_equal=operator.whitespace_after
    )
    yield cst.Assign([target], node.value, semicolon=node.semicolon)


OPERATOR = Operator("augmented_assignment", (cst.AugAssign,), changes, "an assignment that updates a value")
