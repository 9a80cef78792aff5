"""An assignment left out: to an attribute or an item, to a name that had a value before, or an update of a value."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from generators.repository.operators.base import Operator, Place


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.AugAssign):
        yield cst.Pass(semicolon=node.semicolon)
        return
    if isinstance(node, cst.Assign):
        targets = [target.target for target in node.targets]
    else:
        assert isinstance(node, cst.AnnAssign)
        targets = [node.target] if node.value is not None else []
    if len(targets) == 1 and (isinstance(targets[0], (cst.Attribute, cst.Subscript)) or _bound_twice(targets[0], place)):
        yield cst.Pass(semicolon=node.semicolon)


def _bound_twice(target: cst.CSTNode, place: Place) -> bool:
    """Whether the name is a parameter or is assigned more than once in the function; else leaving it out is a NameError."""
    if not isinstance(target, cst.Name) or place.function is None:
        return False
    given = place.function.params
    if any(parameter.name.value == target.value for parameter in (*given.posonly_params, *given.params, *given.kwonly_params)):
        return True
    same = m.Assign(targets=[m.AssignTarget(target=m.Name(target.value))])
    return len(m.findall(place.function.body, same)) > 1


OPERATOR = Operator("assignment_removed", (cst.Assign, cst.AnnAssign, cst.AugAssign), changes, "a missing assignment")
