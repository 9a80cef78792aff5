"""A call made for its effect left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Expr)
    if isinstance(node.value, cst.Call):
        yield cst.Pass(semicolon=node.semicolon)


OPERATOR = Operator("call_removed", (cst.Expr,), changes, "a missing call")
