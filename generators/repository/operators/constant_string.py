"""A string with its last character missing, or (a key, a mode) in the wrong case."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.SimpleString)
    if place.in_parameters or "b" in node.prefix.lower() or len(node.quote) != 1:
        return
    body = node.value[len(node.prefix) + 1 : -1]
    if not body or "\\" in body or not body.isprintable():
        return  # a cut escape is another character or a syntax error
    start, quote = node.value[: len(node.prefix) + 1], node.quote
    for other in (body[:-1], body.swapcase()):
        if other != body:
            yield node.with_changes(value=f"{start}{other}{quote}")


OPERATOR = Operator("constant_string", (cst.SimpleString,), changes, "a string")
