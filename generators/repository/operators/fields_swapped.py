"""Two neighbouring fields in the wrong order, in a class where order is meaning: a data class, a named tuple, a structure."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place, words_of
from generators.repository.operators.statements import exchanged

DECORATORS = {"dataclass", "define", "frozen", "mutable", "attrs", "attr", "s", "attributes"}
BASES = {"NamedTuple", "Structure", "BaseModel"}


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    owner = place.ancestors[-2] if place.in_class_body else None
    if not isinstance(owner, cst.ClassDef) or not _ordered(owner):
        return
    other = place.following(node)
    if other is None or _field(node) is None or _field(node) != _field(other):
        return  # one without a default may not follow one that has some
    yield exchanged(node, other)


def _ordered(node: cst.ClassDef) -> bool:
    decorators = {word for decorator in node.decorators for word in words_of(decorator.decorator)[-1:]}
    bases = {word for base in node.bases for word in words_of(base.value)[-1:]}
    return bool(decorators & DECORATORS or bases & BASES)


def _field(node: cst.CSTNode) -> bool | None:
    """Whether a field has a default; None for what is no field."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    if isinstance(small, cst.AnnAssign):
        return small.value is not None
    called = isinstance(small, cst.Assign) and isinstance(small.value, cst.Call)
    return False if called else None


OPERATOR = Operator("fields_swapped", (cst.SimpleStatementLine,), changes, "the order of two fields")
