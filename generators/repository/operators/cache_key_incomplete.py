"""A cache, or a record of what was seen, whose key leaves out something that the value depends on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from generators.repository.operators.base import Operator, Place, in_parentheses_of, words_of

STORES = {"cache", "caches", "cached", "memo", "memos", "seen", "visited", "key", "keys", "lookup", "registry"}


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.Subscript):
        if len(node.slice) > 1 and _stores(node.value):
            for rest in _without_one(node.slice):
                yield node.with_changes(slice=rest)
        return
    assert isinstance(node, cst.Tuple)
    if len(node.elements) < 2 or not _is_key(node, place):
        return
    if len(node.elements) == 2:
        for kept in reversed(node.elements):
            if isinstance(kept, cst.Element):
                yield in_parentheses_of(node, kept.value)
    else:
        for rest in _without_one(node.elements):
            yield node.with_changes(elements=rest)


def _is_key(node: cst.Tuple, place: Place) -> bool:
    above, parent = place.ancestors[-2:]
    if isinstance(parent, cst.Assign):
        return parent.value is node and any(_stores(target.target) for target in parent.targets)
    if isinstance(parent, cst.Return):
        return place.function is not None and _stores(place.function.name)
    if isinstance(parent, cst.Arg) and isinstance(above, cst.Call) and isinstance(above.func, cst.Attribute):
        return _stores(above.func.value)
    return isinstance(parent, cst.Comparison) and parent.left is node and _stores(parent.comparisons[0].comparator)


def _stores(node: cst.CSTNode) -> bool:
    """Whether a name speaks of a cache or a key."""
    return any(part in STORES for word in words_of(node)[-1:] for part in word.lower().split("_"))


def _without_one(parts: Sequence[Any]) -> Iterator[list[Any]]:
    for index in range(len(parts)):
        rest = [*parts[:index], *parts[index + 1 :]]
        if index == len(rest):
            rest[-1] = rest[-1].with_changes(comma=parts[-1].comma)
        yield rest


OPERATOR = Operator("cache_key_incomplete", (cst.Tuple, cst.Subscript), changes, "an incomplete key")
