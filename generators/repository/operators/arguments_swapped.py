"""Two neighbouring positional arguments of a call exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Call)
    for index, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if _plain(first) and _plain(second) and not first.value.deep_equals(second.value):
            args = [*node.args]
            args[index], args[index + 1] = first.with_changes(value=second.value), second.with_changes(value=first.value)
            yield node.with_changes(args=args)


def _plain(argument: cst.Arg) -> bool:
    return argument.keyword is None and not argument.star


OPERATOR = Operator("arguments_swapped", (cst.Call,), changes, "arguments in the wrong order")
