"""The two branches of an `if` with an `else`, or of a conditional expression, exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.IfExp):
        yield node.with_changes(body=node.orelse, orelse=node.body)
    elif isinstance(node, cst.If) and isinstance(node.orelse, cst.Else):
        yield node.with_changes(body=node.orelse.body, orelse=node.orelse.with_changes(body=node.body))


OPERATOR = Operator("branches_swapped", (cst.IfExp, cst.If), changes, "exchanged branches")
