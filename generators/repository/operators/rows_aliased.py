"""One row many times over: `[[0] * n for _ in range(m)]` becomes `[[0] * n] * m`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from generators.repository.operators.base import Operator, Place, parenthesized

FRESH = (cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp)


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.ListComp)
    loop, row = node.for_in, node.elt
    if loop.ifs or loop.inner_for_in or loop.asynchronous or not isinstance(loop.target, cst.Name) or not _fresh(row):
        return
    if m.findall(row, m.Name(loop.target.value)):
        return
    call = loop.iter
    if isinstance(call, cst.Call) and m.matches(call, m.Call(func=m.Name("range"), args=[m.Arg()])) and not call.args[0].star:
        rows = cst.List([cst.Element(row)], lbracket=node.lbracket, rbracket=node.rbracket)
        yield cst.BinaryOperation(rows, cst.Multiply(), parenthesized(call.args[0].value), lpar=node.lpar, rpar=node.rpar)


def _fresh(row: cst.BaseExpression) -> bool:
    repeated = (
        isinstance(row, cst.BinaryOperation) and isinstance(row.operator, cst.Multiply) and isinstance(row.left, cst.List)
    )
    called = isinstance(row, cst.Call) and isinstance(row.func, cst.Name) and row.func.value in ("list", "dict", "set")
    return isinstance(row, FRESH) or repeated or called


OPERATOR = Operator("rows_aliased", (cst.ListComp,), changes, "rows that are one object")
