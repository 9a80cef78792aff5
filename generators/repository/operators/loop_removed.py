"""A loop that is never run."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place
from generators.repository.operators.statements import left_out


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    yield left_out(node, place)


OPERATOR = Operator("loop_removed", (cst.For, cst.While), changes, "a missing loop")
