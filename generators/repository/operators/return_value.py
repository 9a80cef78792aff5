"""A result that is lost (`None` in its place), turned round (`not`), or has its parts in the wrong order."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, parenthesized


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Return)
    value = node.value
    if value is None or (isinstance(value, cst.Name) and value.value in ("None", "True", "False")):
        return
    space = node.whitespace_after_return if not isinstance(node.whitespace_after_return, cst.MaybeSentinel) else None
    spaced = node if space is None or not space.empty else node.with_changes(whitespace_after_return=cst.SimpleWhitespace(" "))
    yield spaced.with_changes(value=cst.Name("None"))
    if isinstance(value, (cst.Comparison, cst.BooleanOperation)):
        yield spaced.with_changes(value=cst.UnaryOperation(cst.Not(), parenthesized(value)))
    elif isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Not):
        yield spaced.with_changes(value=value.expression)
    elif isinstance(value, cst.Tuple) and len(value.elements) == 2:
        first, second = value.elements
        turned = [first.with_changes(value=second.value), second.with_changes(value=first.value)]
        yield node.with_changes(value=value.with_changes(elements=turned))


OPERATOR = Operator("return_value", (cst.Return,), changes, "a return value")
