"""A `try` or `with` left out: its statements stand alone, or are gone with it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place
from generators.repository.operators.statements import left_out, unwrapped


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    yield left_out(node, place)
    if isinstance(node, (cst.Try, cst.TryStar)):
        parts = [node.body, node.orelse.body if node.orelse else None, node.finalbody.body if node.finalbody else None]
    else:
        assert isinstance(node, cst.With)
        if any(item.asname for item in node.items):
            return  # its name would be unknown: `resource_not_closed` assigns it
        parts = [node.body]
    if alone := unwrapped(node, parts):
        yield alone


OPERATOR = Operator("wrapper_removed", (cst.Try, cst.TryStar, cst.With), changes, "a missing `try` or `with`")
