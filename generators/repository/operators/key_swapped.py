"""Another key: one that the same function uses on the same mapping."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import libcst as cst
import libcst.matchers as m

from generators.repository.operators.base import Operator, Place, text_of

READERS = ("get", "pop", "setdefault")


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, (cst.Subscript, cst.Call))
    if place.function is None:
        return
    used = _key(node)
    if used is None:
        return
    mapping, key = used
    keys = keys_of(place.function)[mapping]
    others = [other for other in keys if other != key.value]
    if others:
        index = keys.index(key.value) % len(others)
        yield _with_key(node, key.with_changes(value=others[index]))


@lru_cache(maxsize=4)
def keys_of(function: cst.FunctionDef) -> dict[str, list[str]]:
    """The string keys, as they are written, that a function uses on each mapping."""
    found: dict[str, list[str]] = {}
    for node in m.findall(function.body, m.Subscript() | m.Call(func=m.Attribute())):
        if isinstance(node, (cst.Subscript, cst.Call)) and (used := _key(node)):
            keys = found.setdefault(used[0], [])
            if used[1].value not in keys:
                keys.append(used[1].value)
    return found


def _key(node: cst.Subscript | cst.Call) -> tuple[str, cst.SimpleString] | None:
    """The mapping's code and the key of `x["key"]` or `x.get("key")`."""
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice
        if len(node.slice) == 1 and isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            return text_of(node.value), index.value
    elif isinstance(node.func, cst.Attribute) and node.func.attr.value in READERS and node.args:
        first = node.args[0].value
        if isinstance(first, cst.SimpleString):
            return text_of(node.func.value), first
    return None


def _with_key(node: cst.Subscript | cst.Call, key: cst.SimpleString) -> cst.CSTNode:
    if isinstance(node, cst.Subscript):
        return node.with_changes(slice=[node.slice[0].with_changes(slice=cst.Index(key))])
    return node.with_changes(args=[node.args[0].with_changes(value=key), *node.args[1:]])


OPERATOR = Operator("key_swapped", (cst.Subscript, cst.Call), changes, "a wrong key")
