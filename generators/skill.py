"""What a skill is: the smallest thing that a synthesized task can ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Generic, TypeAlias, TypeVar

from generators.names import Names

Slots: TypeAlias = Mapping[str, str]
Thing = TypeVar("Thing")
"""What stands under a name in the room's pure model: a file, a table."""


class Skill(Generic[Thing]):
    """One family of requests: its words, its reference command, and its meaning on the pure model.

    `apply` is written from the words, not from the command: the two are compared in the tests by
    running the command for real.
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
    loose: ClassVar[tuple[str, ...]] = ()
    """Slots whose file the request defines line by line: a missing last line end is no mistake."""
    near_misses: ClassVar[tuple[str, ...]]
    """Plausible commands that do something else; the verifiers must fail each of them."""

    def prepare(self, slots: Slots, names: Names) -> dict[str, Thing]:
        """The part of the starting state that the request speaks of."""
        raise NotImplementedError

    def apply(self, slots: Slots, state: Mapping[str, Thing]) -> dict[str, Thing]:
        """The state after the request was met."""
        raise NotImplementedError


def changed(before: Mapping[str, Thing], after: Mapping[str, Thing]) -> tuple[str, ...]:
    """Names at which two states differ, sorted."""
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def without(state: Mapping[str, Thing], *names: str) -> dict[str, Thing]:
    """`state` without `names`."""
    return {name: thing for name, thing in state.items() if name not in names}
