"""What an operator is: a name, the syntax nodes that it looks at, and the wrong versions it makes of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst


@dataclass(frozen=True)
class Place:
    """Where a node stands."""

    ancestors: tuple[cst.CSTNode, ...]
    """From the module down to the parent."""
    function: cst.FunctionDef
    """The innermost function around it."""

    @property
    def parent(self) -> cst.CSTNode:
        return self.ancestors[-1]

    @property
    def in_parameters(self) -> bool:
        """Whether the node is part of a parameter list (a default value)."""
        return any(isinstance(node, cst.Parameters) for node in self.ancestors)


@dataclass(frozen=True)
class Operator:
    """One way to break code. `changes` gives replacements for a node that are wrong in one respect; formatting is kept."""

    name: str
    nodes: tuple[type[cst.CSTNode], ...]
    changes: Callable[[cst.CSTNode, Place], Iterable[cst.CSTNode]]
    what: str
    """The kind of mistake, for people: `a comparison`."""


def swapped(table: Sequence[tuple[type[cst.CSTNode], type[cst.CSTNode]]]) -> dict[type[cst.CSTNode], type[cst.CSTNode]]:
    """A two-way table of node types."""
    return dict(table) | {second: first for first, second in table}


def spaced(kind: type[cst.CSTNode], like: cst.CSTNode) -> cst.CSTNode:
    """A new operator of type `kind` with the whitespace of `like`."""
    space: dict[str, Any] = {name: getattr(like, name) for name in ("whitespace_before", "whitespace_after")}
    return kind(**space)


def is_string(node: cst.CSTNode) -> bool:
    """Whether a node is a string literal of any form."""
    return isinstance(node, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString))


def parenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression in parentheses unless it is an atom or has some."""
    atoms = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.SimpleString, cst.List, cst.Dict, cst.Set)
    if node.lpar or isinstance(node, atoms):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
