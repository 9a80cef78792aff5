"""A class without one of its methods: calls of it fail, or reach the one of a base class."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place, words_of
from generators.repository.operators.statements import left_out


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    assert isinstance(node, cst.FunctionDef)
    overload = any("overload" in words_of(decorator.decorator) for decorator in node.decorators)
    if place.in_class_body and not overload:
        yield left_out(node, place)


OPERATOR = Operator("method_removed", (cst.FunctionDef,), changes, "a missing method")
