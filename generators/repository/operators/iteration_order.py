"""Items in the wrong order: not sorted, backwards, from the wrong end."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, in_parentheses_of, text_of


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.Subscript):
        if isinstance(node.slice[0].slice, cst.Slice) and text_of(node.slice[0]).replace(" ", "") == "::-1":
            yield in_parentheses_of(node, node.value)
    elif isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute):
            yield from _method(node, node.func)
        elif isinstance(node.func, cst.Name) and node.args and not node.args[0].star:
            yield from _function(node, node.func.value, place)


def _function(node: cst.Call, name: str, place: Place) -> Iterator[cst.CSTNode]:
    if name in ("sorted", "reversed") and len(node.args) == 1:
        yield in_parentheses_of(node, node.args[0].value)
    if name == "sorted" and not _directed(node):
        yield _backwards(node)
    looped = isinstance(place.parent, (cst.For, cst.CompFor)) and place.parent.iter is node
    if name == "range" and looped:
        yield cst.Call(cst.Name("reversed"), [cst.Arg(node)])


def _method(node: cst.Call, func: cst.Attribute) -> Iterator[cst.CSTNode]:
    name = func.attr.value
    count = len(node.args)
    at_front = count > 0 and isinstance(node.args[0].value, cst.Integer) and node.args[0].value.value == "0"
    if name == "sort" and not _directed(node):
        yield _backwards(node)
    elif name == "pop" and count == 0:
        yield node.with_changes(args=[cst.Arg(cst.Integer("0"))])
    elif name == "pop" and count == 1 and at_front:
        yield node.with_changes(args=[])
    elif name in ("popleft", "appendleft"):
        yield node.with_changes(func=func.with_changes(attr=cst.Name(name.removesuffix("left"))))
    elif name == "append" and count == 1 and not node.args[0].star:
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        args = [cst.Arg(cst.Integer("0"), comma=comma), *node.args]
        yield node.with_changes(func=func.with_changes(attr=cst.Name("insert")), args=args)
    elif name == "insert" and count == 2 and at_front:
        yield node.with_changes(func=func.with_changes(attr=cst.Name("append")), args=[node.args[1]])


def _directed(node: cst.Call) -> bool:
    """Whether the call says already which way to sort, or may say so."""
    return any(argument.star or (argument.keyword and argument.keyword.value == "reverse") for argument in node.args)


def _backwards(node: cst.Call) -> cst.Call:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    args = [*node.args]
    if args and isinstance(args[-1].comma, cst.MaybeSentinel):
        args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return node.with_changes(args=[*args, cst.Arg(cst.Name("True"), keyword=cst.Name("reverse"), equal=equal)])


OPERATOR = Operator("iteration_order", (cst.Call, cst.Subscript), changes, "the order of items")
