"""What a skill is: the smallest thing that a terminal task can ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias

from generators.names import Names
from generators.terminal.state import Node, State, text_file

Slots: TypeAlias = Mapping[str, str]


class Skill:
    """One family of requests: its words, its reference command, and its meaning on the pure model.

    `apply` is written from the words, not from the command: the two are compared in the tests by
    running the command in a real sandbox.
    """

    name: ClassVar[str]
    slots: ClassVar[tuple[str, ...]]
    """Names that one instance draws, all distinct."""
    clauses: ClassVar[tuple[str, ...]]
    """Short requests in lower case, for `a and then b`."""
    sentence: ClassVar[str]
    """The same request said in full."""
    command: ClassVar[str]
    """Reference solution; prints nothing."""
    near_misses: ClassVar[tuple[str, ...]]
    """Plausible commands that do something else; the verifiers must fail each of them."""

    def prepare(self, slots: Slots, names: Names) -> dict[str, Node]:
        """The part of the starting state that the request speaks of."""
        raise NotImplementedError

    def apply(self, slots: Slots, state: State) -> dict[str, Node]:
        """The state after the request was met."""
        raise NotImplementedError


def some_file(names: Names, least: int = 2, most: int = 5) -> Node:
    """A file of `least` to `most` lines of one or two words; no two lines are equal."""
    lines: dict[str, None] = {}
    for _ in range(names.rng.randint(least, most)):
        lines[names.word() if names.rng.random() < 0.5 else f"{names.word()} {names.word()}"] = None
    while len(lines) < least:
        lines[names.word()] = None
    return text_file(*lines)
