"""One operand of an arithmetic operation left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.BinaryOperation)
    for kept in (node.left, node.right):
        if node.lpar and not kept.lpar:
            yield kept.with_changes(lpar=node.lpar, rpar=node.rpar)
        else:
            yield kept


OPERATOR = Operator("chain_broken", (cst.BinaryOperation,), changes, "a missing term")
