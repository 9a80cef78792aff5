"""Another parameter of the same function used in a parameter's place."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Name)
    parent = place.parent
    used = isinstance(parent, (cst.Arg, cst.BinaryOperation, cst.ComparisonTarget, cst.Comparison, cst.Return, cst.Index))
    if not used or place.in_parameters or getattr(parent, "keyword", None) is node:
        return
    names = [parameter.name.value for parameter in place.function.params.params]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    if node.value in names and len(names) > 1:
        yield node.with_changes(value=names[(names.index(node.value) + 1) % len(names)])


OPERATOR = Operator("variable_swapped", (cst.Name,), changes, "a wrong variable")
