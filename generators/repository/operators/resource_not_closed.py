"""A resource that stays open or locked: a `with` that became an assignment, a `finally` left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from generators.repository.operators.base import Neighbours, Operator, Place
from generators.repository.operators.statements import leading, unwrapped

ENDINGS = ("close", "release", "shutdown", "terminate", "stop", "unlink", "cleanup", "disconnect", "reset")


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    if isinstance(node, cst.Try):
        if (
            not node.handlers
            and node.finalbody is not None
            and _ends(node.finalbody)
            and (alone := unwrapped(node, [node.body]))
        ):
            yield alone
        return
    assert isinstance(node, cst.With)
    item = node.items[0]
    if len(node.items) > 1 or node.asynchronous or item.asname is None or not isinstance(item.asname.name, cst.Name):
        return
    if inner := unwrapped(node.with_changes(leading_lines=()), [node.body]):
        line = cst.SimpleStatementLine(
            [cst.Assign([cst.AssignTarget(item.asname.name)], item.item)], leading_lines=leading(node)
        )
        yield Neighbours((node,), (line, *inner.new))


def _ends(final: cst.Finally) -> bool:
    return any(m.findall(final.body, m.Call(func=m.Attribute(attr=m.Name(name)))) for name in ENDINGS)


OPERATOR = Operator("resource_not_closed", (cst.With, cst.Try), changes, "a resource that is not closed")
