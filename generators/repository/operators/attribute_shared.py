"""A mutable attribute that belongs to the class and not to each instance: `self.items = []` moved out of `__init__`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place
from generators.repository.operators.mutable_default import is_mutable


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.ClassDef)
    body = node.body
    if not isinstance(body, cst.IndentedBlock):
        return
    after = int(_documented(body))
    for index, method in enumerate(body.body):
        if isinstance(method, cst.FunctionDef) and method.name.value == "__init__":
            for shared, shorter in _moved(method):
                lines = [*body.body[:index], shorter, *body.body[index + 1 :]]
                yield node.with_changes(body=body.with_changes(body=[*lines[:after], shared, *lines[after:]]))


def _moved(method: cst.FunctionDef) -> Iterator[tuple[cst.CSTNode, cst.FunctionDef]]:
    """For each attribute that may be shared: its line for the class, and the method without its line."""
    for index, line in enumerate(method.body.body):
        if shared := _assigned(line):
            rest = [*method.body.body[:index], *method.body.body[index + 1 :]] or [cst.SimpleStatementLine([cst.Pass()])]
            yield shared, method.with_changes(body=method.body.with_changes(body=rest))


def _assigned(line: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """`x = []` for the line `self.x = []`."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target: cst.CSTNode = small.targets[0].target
    elif isinstance(small, cst.AnnAssign) and small.value is not None:
        target = small.target
    else:
        return None
    if not isinstance(target, cst.Attribute) or not isinstance(target.value, cst.Name) or target.value.value != "self":
        return None
    if small.value is None or not is_mutable(small.value):
        return None
    if isinstance(small, cst.AnnAssign):
        return cst.SimpleStatementLine([small.with_changes(target=target.attr)])
    return cst.SimpleStatementLine([small.with_changes(targets=[small.targets[0].with_changes(target=target.attr)])])


def _documented(body: cst.IndentedBlock) -> bool:
    first = body.body[0]
    small = first.body[0] if isinstance(first, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


OPERATOR = Operator("attribute_shared", (cst.ClassDef,), changes, "a value that instances share")
