"""What an operator is: a name, the syntax nodes that it looks at, and the wrong versions it makes of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from generators.repository.scopes import ClassNames


@dataclass(frozen=True)
class Place:
    """Where a node stands."""

    ancestors: tuple[cst.CSTNode, ...]
    """From the module down to the parent."""
    function: cst.FunctionDef | None
    """The innermost function whose body holds it; None in class bodies, at module level, and in what these evaluate of a
    function (its decorators and defaults)."""
    owner: ClassNames | None = None
    """Names of the class around the outermost function."""

    @property
    def parent(self) -> cst.CSTNode:
        return self.ancestors[-1]

    @property
    def in_parameters(self) -> bool:
        """Whether the node is part of a parameter list (a default value)."""
        return any(isinstance(node, cst.Parameters) for node in self.ancestors)

    @property
    def block(self) -> Sequence[cst.CSTNode]:
        """The statements of the block that is the node's parent; none where the parent is no block."""
        return self.parent.body if isinstance(self.parent, (cst.IndentedBlock, cst.Module)) else ()

    @property
    def in_class_body(self) -> bool:
        """Whether the node is a statement of a class body."""
        return len(self.ancestors) > 1 and bool(self.block) and isinstance(self.ancestors[-2], cst.ClassDef)

    def following(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The statement after `node` in its block."""
        block = self.block
        index = next((index for index, one in enumerate(block) if one is node), len(block))
        return block[index + 1] if index + 1 < len(block) else None


@dataclass(frozen=True)
class Neighbours:
    """A change of nodes that stand next to each other in one block or list: `new` comes in the place of `old`."""

    old: tuple[cst.CSTNode, ...]
    new: tuple[cst.CSTNode, ...]


@dataclass(frozen=True)
class Operator:
    """One way to break code. `changes` gives what may stand in a node's place, wrong in one respect; formatting is kept."""

    name: str
    nodes: tuple[type[cst.CSTNode], ...]
    changes: Callable[[cst.CSTNode, Place], Iterable[cst.CSTNode | Neighbours]]
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


def in_parentheses_of(node: cst.BaseExpression, kept: cst.BaseExpression) -> cst.BaseExpression:
    """`kept`, which stands in the place of `node`, with the parentheses of `node` unless it has some."""
    return kept.with_changes(lpar=node.lpar, rpar=node.rpar) if node.lpar and not kept.lpar else kept


def text_of(node: cst.CSTNode) -> str:
    """The node's code by itself."""
    return cst.Module(body=()).code_for_node(node)


def words_of(node: cst.CSTNode) -> list[str]:
    """The names that an expression is made of: `self._cache` has `self` and `_cache`."""
    if isinstance(node, cst.Name):
        return [node.value]
    if isinstance(node, cst.Attribute):
        return [*words_of(node.value), node.attr.value]
    return words_of(node.func) if isinstance(node, cst.Call) else []
