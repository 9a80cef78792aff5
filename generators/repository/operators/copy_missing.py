"""A copy or conversion left out: `list(x)`, `x.copy()`, `x[:]`, `str(x)` become `x`, a deep copy a shallow one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, in_parentheses_of, text_of

CONVERSIONS = {"list", "dict", "set", "tuple", "str", "int", "float", "bool", "abs", "copy", "deepcopy", "frozenset", "bytes"}
SIMPLE = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.Subscript):
        part = node.slice[0].slice
        whole = isinstance(part, cst.Slice) and part.lower is part.upper is part.step is None
        if whole and len(node.slice) == 1 and not isinstance(place.parent, (cst.AssignTarget, cst.Del)):
            yield in_parentheses_of(node, node.value)
        return
    assert isinstance(node, cst.Call)
    function = node.func
    if isinstance(function, cst.Attribute) and function.attr.value in ("copy", "deepcopy"):
        if not node.args:
            yield in_parentheses_of(node, function.value)
        elif text_of(function.value) == "copy" and len(node.args) == 1:
            yield in_parentheses_of(node, node.args[0].value)
            if function.attr.value == "deepcopy":
                yield node.with_changes(func=function.with_changes(attr=cst.Name("copy")))
    elif isinstance(function, cst.Name) and function.value in CONVERSIONS and len(node.args) == 1:
        argument = node.args[0]
        if isinstance(argument.value, SIMPLE) and not argument.star and argument.keyword is None:
            yield in_parentheses_of(node, argument.value)


OPERATOR = Operator("copy_missing", (cst.Call, cst.Subscript), changes, "a missing copy or conversion")
