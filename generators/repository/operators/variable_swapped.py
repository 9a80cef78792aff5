"""Another variable of the same type in a variable's place: a parameter, or a local that has its value by then."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import libcst as cst

from generators.repository.operators.base import Operator, Place, text_of

USES: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Arg: ("value",),
    cst.Assign: ("value",),
    cst.Attribute: ("value",),
    cst.BinaryOperation: ("left", "right"),
    cst.BooleanOperation: ("left", "right"),
    cst.CompFor: ("iter",),
    cst.Comparison: ("left",),
    cst.ComparisonTarget: ("comparator",),
    cst.DictElement: ("value",),
    cst.For: ("iter",),
    cst.FormattedStringExpression: ("expression",),
    cst.If: ("test",),
    cst.IfExp: ("test", "body", "orelse"),
    cst.Index: ("value",),
    cst.Return: ("value",),
    cst.Subscript: ("value",),
    cst.UnaryOperation: ("expression",),
}
"""Where a name is read, by the type of the node around it."""
KINDS: dict[type[cst.CSTNode], str] = {
    cst.Comparison: "bool",
    cst.Dict: "dict",
    cst.DictComp: "dict",
    cst.Float: "float",
    cst.FormattedString: "str",
    cst.Integer: "int",
    cst.List: "list",
    cst.ListComp: "list",
    cst.Set: "set",
    cst.SetComp: "set",
    cst.SimpleString: "str",
}
RESULTS = {"len": "int", "sorted": "list", "repr": "str"} | {
    name: name for name in ("int", "float", "str", "list", "dict", "set", "bool", "tuple", "bytes")
}
"""Type of what a built-in function gives."""


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Name)
    parent = place.parent
    if place.function is None or not any(getattr(parent, field) is node for field in USES.get(type(parent), ())):
        return
    types = types_of(place.function)
    if node.value not in types:
        return
    here = _statement(place, place.function)
    alike = [name for name, (kind, bound) in types.items() if kind == types[node.value][0] and bound < here]
    if node.value in alike and len(alike) > 1:
        yield node.with_changes(value=alike[(alike.index(node.value) + 1) % len(alike)])


@lru_cache(maxsize=4)
def types_of(function: cst.FunctionDef) -> dict[str, tuple[str, int]]:
    """Type of each variable, and the index of the statement of the function's body that binds it (-1: a parameter).

    The type of a parameter without annotation or literal default is empty; locals of which nothing tells the type, or more
    than one statement tells another, are left out.
    """
    given = [*function.params.posonly_params, *function.params.params, *function.params.kwonly_params]
    types = {parameter.name.value: (_given(parameter), -1) for parameter in given}
    for name in ("self", "cls"):
        types.pop(name, None)
    for index, statement in enumerate(function.body.body):
        line = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
        if isinstance(line, cst.Assign) and len(line.targets) == 1 and isinstance(line.targets[0].target, cst.Name):
            name, kind = line.targets[0].target.value, _kind(line.value)
            known = types.get(name)
            if known is None and kind:
                types[name] = kind, index
            elif known is not None and known[1] >= 0 and known[0] != kind:
                del types[name]
    return types


def _statement(place: Place, function: cst.FunctionDef) -> int:
    """The index of the function's statement that holds the node."""
    depth = next(index for index, node in enumerate(place.ancestors) if node is function)
    inside = place.ancestors[depth + 2] if len(place.ancestors) > depth + 2 else None
    return next((index for index, statement in enumerate(function.body.body) if statement is inside), 0)


def _given(parameter: cst.Param) -> str:
    if parameter.annotation is not None:
        return text_of(parameter.annotation.annotation)
    return _kind(parameter.default) if parameter.default is not None else ""


def _kind(value: cst.BaseExpression) -> str:
    if isinstance(value, cst.Name) and value.value in ("True", "False"):
        return "bool"
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Name):
        name = value.func.value
        return RESULTS.get(name, name if name[:1].isupper() else "")
    return KINDS.get(type(value), "")


OPERATOR = Operator("variable_swapped", (cst.Name,), changes, "a wrong variable")
