"""An assignment left out: to an attribute or an item, or to a name that had a value before."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.Assign)
    target = node.targets[0].target
    if len(node.targets) == 1 and (isinstance(target, (cst.Attribute, cst.Subscript)) or _bound_twice(target, place)):
        yield cst.Pass(semicolon=node.semicolon)


def _bound_twice(target: cst.CSTNode, place: Place) -> bool:
    """Whether the name is a parameter or is assigned more than once in the function; else leaving it out is a NameError."""
    if not isinstance(target, cst.Name):
        return False
    parameters = place.function.params
    if any(parameter.name.value == target.value for parameter in (*parameters.params, *parameters.kwonly_params)):
        return True
    same = m.Assign(targets=[m.AssignTarget(target=m.Name(target.value))])
    return len(m.findall(place.function.body, same)) > 1


OPERATOR = Operator("assignment_removed", (cst.Assign,), changes, "a missing assignment")
