"""A table or a choice without one of its entries."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place

CHOICES = ("isinstance", "issubclass", "startswith", "endswith")


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode | Neighbours]:
    assert isinstance(node, (cst.List, cst.Set, cst.Dict, cst.Tuple))
    entries = node.elements
    if len(entries) < 2 or not _is_table(node, place):
        return
    if isinstance(node, cst.Tuple) and len(entries) == 2:
        yield from _single(node, place)
        return
    for index, entry in enumerate(entries):
        if index + 1 < len(entries):
            yield Neighbours((entry,), ())
        else:  # the last one's comma goes too
            before = entries[index - 1]
            yield Neighbours((before, entry), (before.with_changes(comma=entry.comma),))


def _single(node: cst.Tuple, place: Place) -> Iterator[cst.CSTNode]:
    """What is left of two: a type by itself, or a tuple of one where something is looked for in it."""
    for kept in reversed(node.elements):
        if isinstance(place.parent, cst.ComparisonTarget):
            yield node.with_changes(elements=[kept.with_changes(comma=cst.Comma())])
        elif isinstance(kept, cst.Element):
            yield kept.value


def _is_table(node: cst.CSTNode, place: Place) -> bool:
    parent = place.parent
    if not isinstance(node, cst.Tuple):
        return not isinstance(parent, (cst.AssignTarget, cst.For, cst.CompFor))
    if isinstance(parent, cst.Arg) and isinstance(call := place.ancestors[-2], cst.Call):
        name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        return isinstance(name, cst.Name) and name.value in CHOICES
    return isinstance(parent, (cst.ComparisonTarget, cst.ExceptHandler))


OPERATOR = Operator("entry_missing", (cst.List, cst.Set, cst.Dict, cst.Tuple), changes, "a missing entry")
