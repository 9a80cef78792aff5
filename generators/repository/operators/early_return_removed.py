"""The return of a guard clause left out: the function runs on."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Return)
    *_, branch, block, line = place.ancestors
    alone = isinstance(block, cst.IndentedBlock) and len(block.body) == 1
    if isinstance(branch, cst.If) and alone and isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        yield cst.Pass(semicolon=node.semicolon)


OPERATOR = Operator("early_return_removed", (cst.Return,), changes, "a missing early return")
