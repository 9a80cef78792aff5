"""A coroutine that is not awaited."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, in_parentheses_of


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Await)
    yield in_parentheses_of(node, node.expression)


OPERATOR = Operator("await_dropped", (cst.Await,), changes, "a missing `await`")
