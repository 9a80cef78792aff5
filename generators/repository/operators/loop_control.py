"""`break` for `continue`, and back."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.Break):
        yield cst.Continue(semicolon=node.semicolon)
    elif isinstance(node, cst.Continue):
        yield cst.Break(semicolon=node.semicolon)


OPERATOR = Operator("loop_control", (cst.Break, cst.Continue), changes, "how a loop goes on")
