"""A case that is not told apart: an `elif`, an `else`, a handler of an exception or a `case` left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.If):
        if node.orelse is not None and place.block:
            yield from _shorter(node)
    elif isinstance(node, cst.Match):
        yield from _without_one(node, "cases", node.cases)
    elif isinstance(node, cst.Try):
        yield from _without_one(node, "handlers", node.handlers)


def _shorter(node: cst.If) -> Iterator[cst.If]:
    """The chain without one of what follows its first branch."""
    if isinstance(node.orelse, cst.If):
        yield node.with_changes(orelse=node.orelse.orelse)
        for rest in _shorter(node.orelse):
            yield node.with_changes(orelse=rest)
    elif node.orelse is not None:
        yield node.with_changes(orelse=None)


def _without_one(node: cst.CSTNode, name: str, parts: Any) -> Iterator[cst.CSTNode]:
    if len(parts) > 1:
        for index in range(len(parts)):
            changed: dict[str, Any] = {name: [*parts[:index], *parts[index + 1 :]]}
            yield node.with_changes(**changed)


OPERATOR = Operator("branch_removed", (cst.If, cst.Match, cst.Try), changes, "a missing case")
