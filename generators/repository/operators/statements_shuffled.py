"""Two neighbouring simple statements in the wrong order."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place

ENDS = (cst.Return, cst.Raise, cst.Break, cst.Continue, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal, cst.Pass)


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.IndentedBlock)
    for index, (first, second) in enumerate(zip(node.body, node.body[1:], strict=False)):
        if _moves(first) and _moves(second):
            yield node.with_changes(body=[*node.body[:index], second, first, *node.body[index + 2 :]])


def _moves(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    small = statement.body[0]
    bare_string = isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))
    return not isinstance(small, ENDS) and not bare_string


OPERATOR = Operator("statements_shuffled", (cst.IndentedBlock,), changes, "the order of two statements")
