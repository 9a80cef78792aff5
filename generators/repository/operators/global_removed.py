"""A name that becomes local: its `global` or `nonlocal` left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, (cst.Global, cst.Nonlocal))
    yield cst.Pass(semicolon=node.semicolon)


OPERATOR = Operator("global_removed", (cst.Global, cst.Nonlocal), changes, "a name that is local by mistake")
