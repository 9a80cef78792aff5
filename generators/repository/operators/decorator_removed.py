"""A function or class without one of its decorators."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Neighbours, Operator, Place, words_of

IDLE = {"overload", "override", "final", "abstractmethod", "wraps", "no_type_check", "deprecated", "runtime_checkable"}
"""Decorators for readers and type checkers, and such as tests hardly ever see."""


def changes(node: cst.CSTNode, place: Place) -> Iterator[Neighbours]:
    assert isinstance(node, cst.Decorator)
    if (words_of(node.decorator) or [""])[-1] not in IDLE:
        yield Neighbours((node,), ())


OPERATOR = Operator("decorator_removed", (cst.Decorator,), changes, "a missing decorator")
