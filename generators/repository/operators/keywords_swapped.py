"""The values of two neighbouring keyword arguments exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Call)
    for index, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if first.keyword and second.keyword and not first.value.deep_equals(second.value):
            args = [*node.args]
            args[index], args[index + 1] = first.with_changes(value=second.value), second.with_changes(value=first.value)
            yield node.with_changes(args=args)


OPERATOR = Operator("keywords_swapped", (cst.Call,), changes, "keyword arguments with each other's values")
