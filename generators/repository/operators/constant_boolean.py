"""`True` for `False`, and back."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Name)
    if node.value in ("True", "False") and not place.in_parameters:
        yield node.with_changes(value="False" if node.value == "True" else "True")


OPERATOR = Operator("constant_boolean", (cst.Name,), changes, "a truth value")
