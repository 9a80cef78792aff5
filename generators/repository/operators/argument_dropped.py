"""A keyword argument of a call left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Call)
    for index, argument in enumerate(node.args):
        if argument.keyword is not None and len(node.args) > 1:
            args = [*node.args[:index], *node.args[index + 1 :]]
            if index == len(args):  # the last one's comma goes too
                args[-1] = args[-1].with_changes(comma=argument.comma)
            yield node.with_changes(args=args)


OPERATOR = Operator("argument_dropped", (cst.Call,), changes, "a missing argument")
