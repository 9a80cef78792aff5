"""A function or method with a near twin that does something else: `min` for `max`, `lstrip` for `rstrip`, ..."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place

_FUNCTIONS = [("min", "max"), ("any", "all"), ("floor", "ceil")]
_METHODS = [
    ("lower", "upper"),
    ("startswith", "endswith"),
    ("lstrip", "rstrip"),
    ("split", "rsplit"),
    ("find", "rfind"),
    ("partition", "rpartition"),
    ("append", "extend"),
    ("ljust", "rjust"),
    ("keys", "values"),
    ("match", "search"),
    ("removeprefix", "removesuffix"),
]
FUNCTIONS = dict(_FUNCTIONS) | {second: first for first, second in _FUNCTIONS}
METHODS = {"strip": "lstrip"} | dict(_METHODS) | {second: first for first, second in _METHODS}


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Call)
    function = node.func
    if isinstance(function, cst.Name) and function.value in FUNCTIONS:
        yield node.with_changes(func=function.with_changes(value=FUNCTIONS[function.value]))
    elif isinstance(function, cst.Attribute) and function.attr.value in METHODS:
        other = function.attr.with_changes(value=METHODS[function.attr.value])
        yield node.with_changes(func=function.with_changes(attr=other))


OPERATOR = Operator("function_swapped", (cst.Call,), changes, "a call of the wrong function")
