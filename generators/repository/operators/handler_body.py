"""A handler that swallows its exception, or hands it on instead of dealing with it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place
from generators.repository.operators.statements import filled, only_statement


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    assert isinstance(node, cst.ExceptHandler)
    alone = only_statement(node.body)
    for statement in (cst.Pass(), cst.Raise()):
        bare = isinstance(alone, type(statement)) and (not isinstance(alone, cst.Raise) or alone.exc is None)
        if not bare:
            yield Neighbours((node.body,), (filled(node.body, statement),))


OPERATOR = Operator("handler_body", (cst.ExceptHandler,), changes, "what a handler of an exception does")
