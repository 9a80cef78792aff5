"""Two neighbouring entries of a list in the wrong order, or two keys of a table with each other's values."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    assert isinstance(node, (cst.List, cst.Dict))
    if isinstance(place.parent, (cst.AssignTarget, cst.For, cst.CompFor)):
        return
    for first, second in zip(node.elements, node.elements[1:], strict=False):
        plain = isinstance(first, (cst.Element, cst.DictElement)) and isinstance(second, (cst.Element, cst.DictElement))
        if plain and not first.value.deep_equals(second.value):
            yield Neighbours((first, second), (first.with_changes(value=second.value), second.with_changes(value=first.value)))


OPERATOR = Operator("entries_swapped", (cst.List, cst.Dict), changes, "entries in each other's place")
