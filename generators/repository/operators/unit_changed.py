"""A value in the wrong unit: a factor between units, a unit's name, part of a duration for the whole."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place

FACTORS = {
    "1000": "1024",
    "1024": "1000",
    "60": "3600",
    "3600": "60",
    "86400": "3600",
    "24": "60",
    "7": "30",
    "100": "1000",
    "1000000": "1000",
    "1000000000": "1000000",
    "1_000": "1_024",
    "1_000_000": "1_000",
    "1000.0": "1024.0",
    "1024.0": "1000.0",
    "60.0": "3600.0",
    "3600.0": "60.0",
    "1e3": "1e6",
    "1e6": "1e3",
    "1e9": "1e6",
    "1e-3": "1e-6",
    "1e-6": "1e-3",
}
SCALES = (cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo)
NAMES = {
    "weeks": "days",
    "days": "hours",
    "hours": "minutes",
    "minutes": "seconds",
    "seconds": "milliseconds",
    "milliseconds": "seconds",
    "microseconds": "milliseconds",
}
TWINS = {"radians": "degrees", "degrees": "radians", "time_ns": "time", "monotonic_ns": "monotonic"}


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, (cst.Integer, cst.Float)):
        parent = place.parent
        if isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, SCALES) and node.value in FACTORS:
            yield node.with_changes(value=FACTORS[node.value])
    elif isinstance(node, cst.Call):
        yield from _call(node)


def _call(node: cst.Call) -> Iterator[cst.CSTNode]:
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    if not isinstance(name, cst.Name):
        return
    if name.value == "timedelta":
        given = [argument.keyword.value for argument in node.args if argument.keyword]
        for index, argument in enumerate(node.args):
            other = NAMES.get(argument.keyword.value) if argument.keyword else None
            if other is not None and other not in given and argument.keyword is not None:
                renamed = argument.with_changes(keyword=argument.keyword.with_changes(value=other))
                yield node.with_changes(args=[*node.args[:index], renamed, *node.args[index + 1 :]])
    elif isinstance(node.func, cst.Attribute) and node.func.attr.value == "total_seconds" and not node.args:
        yield node.func.with_changes(attr=cst.Name("seconds"), lpar=node.lpar, rpar=node.rpar)
    elif name.value in TWINS:
        other_name = name.with_changes(value=TWINS[name.value])
        func = node.func.with_changes(attr=other_name) if isinstance(node.func, cst.Attribute) else other_name
        yield node.with_changes(func=func)


OPERATOR = Operator("unit_changed", (cst.Integer, cst.Float, cst.Call), changes, "a unit")
