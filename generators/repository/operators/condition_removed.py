"""An `if` left out: what it guards is never done, or is always done."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place
from generators.repository.operators.statements import left_out, unwrapped


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    assert isinstance(node, cst.If)
    if not place.block:
        return  # an `elif`
    yield left_out(node, place)
    if node.orelse is None and (always := unwrapped(node, [node.body])):
        yield always


OPERATOR = Operator("condition_removed", (cst.If,), changes, "a missing condition")
