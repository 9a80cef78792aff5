"""Another attribute, or another method, of the same class: one of the same kind of value or the same signature."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Attribute)
    parent = place.parent
    if place.owner is None or not isinstance(node.value, cst.Name) or node.value.value != "self":
        return
    if isinstance(parent, (cst.AssignTarget, cst.AnnAssign, cst.Del)):
        return  # stores: the attribute would be missing elsewhere
    called = isinstance(parent, cst.Call) and parent.func is node
    table = place.owner.methods if called else place.owner.attributes
    name = node.attr.value
    if name not in table:
        return
    alike = [other for other, kind in table.items() if kind == table[name]]
    if len(alike) > 1:
        yield node.with_changes(attr=node.attr.with_changes(value=alike[(alike.index(name) + 1) % len(alike)]))


OPERATOR = Operator("attribute_swapped", (cst.Attribute,), changes, "a wrong attribute or method")
