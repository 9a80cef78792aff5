"""An error that is no longer raised."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Raise)
    yield cst.Pass(semicolon=node.semicolon)


OPERATOR = Operator("raise_removed", (cst.Raise,), changes, "an error that is not raised")
