"""A copy or conversion left out: `list(x)`, `x.copy()`, `str(x)`, `int(x)` become `x`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place

CONVERSIONS = {"list", "dict", "set", "tuple", "str", "int", "float", "bool", "sorted", "reversed", "abs", "copy", "deepcopy"}


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Call)
    function = node.func
    if isinstance(function, cst.Attribute) and function.attr.value == "copy" and not node.args:
        yield function.value
    elif isinstance(function, cst.Name) and function.value in CONVERSIONS and len(node.args) == 1:
        argument = node.args[0]
        if isinstance(argument.value, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) and not argument.star:
            yield argument.value


OPERATOR = Operator("copy_missing", (cst.Call,), changes, "a missing copy or conversion")
