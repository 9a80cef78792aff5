"""A default that all calls share: the list of `if x is None: x = []` made once, as the default."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from generators.repository.operators.base import Operator, Place
from generators.repository.operators.statements import only_statement

MAKERS = ("list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter", "bytearray")


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Param)
    function = place.ancestors[-2]
    if not isinstance(node.default, cst.Name) or node.default.value != "None":
        return
    if isinstance(function, cst.FunctionDef) and isinstance(function.body, cst.IndentedBlock):
        for statement in function.body.body:
            if isinstance(statement, cst.If) and (made := _made(statement, node.name.value)):
                yield node.with_changes(default=made)


def _made(guard: cst.If, name: str) -> cst.BaseExpression | None:
    """The empty container of `if name is None: name = ...`."""
    absent = m.Comparison(left=m.Name(name), comparisons=[m.ComparisonTarget(m.Is(), m.Name("None"))])
    if not m.matches(guard, m.If(test=absent, orelse=None)):
        return None
    made = only_statement(guard.body)
    if isinstance(made, cst.Assign) and m.matches(made, m.Assign(targets=[m.AssignTarget(m.Name(name))])):
        return made.value if is_mutable(made.value) else None
    return None


def is_mutable(value: cst.BaseExpression) -> bool:
    """Whether an expression makes an empty container."""
    if isinstance(value, (cst.List, cst.Dict)):
        return not value.elements
    call = isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value in MAKERS
    return call and all(isinstance(argument.value, cst.Name) for argument in value.args)


OPERATOR = Operator("mutable_default", (cst.Param,), changes, "a default that calls share")
