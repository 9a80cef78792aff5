"""A class without one of its bases."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, words_of

IDLE = {"object", "ABC", "Generic", "Protocol"}
"""Bases that change nothing at run time, or only what may be instantiated."""


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    assert isinstance(node, cst.ClassDef)
    for index, base in enumerate(node.bases):
        named = base.value.value if isinstance(base.value, cst.Subscript) else base.value
        if base.star or (words_of(named) or [""])[-1] in IDLE:
            continue
        bases = [*node.bases[:index], *node.bases[index + 1 :]]
        if index == len(bases) and bases:  # the last one's comma goes too
            bases[-1] = bases[-1].with_changes(comma=base.comma)
        if bases or node.keywords:
            yield node.with_changes(bases=bases)
        else:
            yield node.with_changes(bases=(), lpar=cst.MaybeSentinel.DEFAULT, rpar=cst.MaybeSentinel.DEFAULT)


OPERATOR = Operator("base_removed", (cst.ClassDef,), changes, "a missing base class")
