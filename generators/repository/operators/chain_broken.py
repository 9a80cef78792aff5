"""One operand of an arithmetic operation left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, in_parentheses_of


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.BinaryOperation)
    for kept in (node.left, node.right):
        yield in_parentheses_of(node, kept)


OPERATOR = Operator("chain_broken", (cst.BinaryOperation,), changes, "a missing term")
