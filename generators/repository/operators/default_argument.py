"""Another default value: a number off by one, a truth value turned round, a string emptied."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Param)
    value = node.default
    if isinstance(value, cst.Integer) and value.value.isdigit():
        yield node.with_changes(default=value.with_changes(value=str(int(value.value) + 1)))
    elif isinstance(value, cst.Name) and value.value in ("True", "False"):
        yield node.with_changes(default=value.with_changes(value="False" if value.value == "True" else "True"))
    elif isinstance(value, cst.SimpleString) and len(value.quote) == 1 and value.raw_value:
        yield node.with_changes(default=value.with_changes(value=f"{value.prefix}{value.quote}{value.quote}"))


OPERATOR = Operator("default_argument", (cst.Param,), changes, "a default value")
