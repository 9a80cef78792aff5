"""Signatures of synthesized tasks: which skills, in which order, and which pool of names they draw.

A signature is the ordered list of a task's skills, written `skill+skill`. It decides the pool: single skills share
the first pool, so that no holdout of compositions takes a skill's plain form away; of the others the own digest of
each selects one of the rest, and a family that is set apart brings its reserve. So a split that takes whole
pools takes whole signatures too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, permutations

from factory.core.errors import UserError
from generators.names import partition, split_digest


@dataclass(frozen=True)
class Signature:
    """An ordered composition of skills with the pool that it draws from."""

    skills: tuple[str, ...]
    pool: str
    """`3`, or `apart-link`."""
    names: tuple[str, ...]
    keys: tuple[str, ...]
    """Split keys."""

    def __str__(self) -> str:
        return "+".join(self.skills)


@dataclass(frozen=True, kw_only=True)
class SignatureSpace:
    """All signatures of one room's configuration."""

    room: str
    table: tuple[str, ...]
    """Every family of the room, in the fixed order that gives reserves."""
    families: tuple[str, ...]
    apart: tuple[str, ...]
    """Families that never share a task's names with others; at most one in a task."""
    apart_percent: int
    """Share of tasks with a family set apart, percent."""
    depth_weights: tuple[int, ...]
    """Relative weight of tasks of 1, 2, ... skills."""
    pools: int

    def __post_init__(self) -> None:
        for field, names in (("families", self.families), ("apart", self.apart)):
            for name in names:
                if name not in self.table:
                    raise UserError(f"{self.room}.{field}", name, f"one of {', '.join(self.table)}")
        if twice := sorted({name for name in (*self.families, *self.apart) if [*self.families, *self.apart].count(name) > 1}):
            raise UserError(f"{self.room}.families", twice[0], "each family once, in either families or apart")
        if not self.families:
            raise UserError(f"{self.room}.families", "()", "at least one family")
        if not 0 <= self.apart_percent <= 100 or (self.apart_percent > 0 and not self.apart):
            raise UserError(f"{self.room}.apart_percent", self.apart_percent, "0 to 100, and 0 where no family is set apart")
        if not self.depth_weights or min(self.depth_weights) < 0 or not sum(self.depth_weights):
            raise UserError(f"{self.room}.depth_weights", self.depth_weights, "weights of depths 1, 2, ..., not all zero")
        if len(self.depth_weights) > len(self.families):
            raise UserError(f"{self.room}.depth_weights", self.depth_weights, "no more depths than families")
        if not 2 <= self.pools <= 16:
            raise UserError(f"{self.room}.pools", self.pools, "2 to 16")

    def signature(self, skills: tuple[str, ...]) -> Signature:
        """The signature of `skills`, with its pool and split keys."""
        shared, reserved = partition(self.room, self.pools)
        text = "+".join(skills)
        apart = next((skill for skill in skills if skill in self.apart), None)
        if apart is None:
            index = 0 if len(skills) == 1 else 1 + split_digest("signature", f"{self.room}:{text}") % (self.pools - 1)
            pool, names = str(index), shared[index]
        else:
            pool, names = f"apart-{apart}", reserved[self.table.index(apart)]
        return Signature(skills, pool, names, (f"signature:{text}", f"slots:{self.room}-{pool}"))

    @cached_property
    def weighted(self) -> tuple[tuple[Signature, int], ...]:
        """Every signature with an integer weight: depth first, then its signatures evenly."""
        known, apart = self._by_depth(known=True), self._by_depth(known=False)
        result: list[tuple[Signature, int]] = []
        for share, groups in ((100 - self.apart_percent, known), (self.apart_percent, apart)):
            for weight, group in zip(self.depth_weights, groups, strict=True):
                result += [(self.signature(skills), share * weight * _UNIT // len(group)) for skills in group]
        return tuple((signature, weight) for signature, weight in result if weight)

    def _by_depth(self, *, known: bool) -> list[list[tuple[str, ...]]]:
        depths = range(1, len(self.depth_weights) + 1)
        if known:
            return [list(permutations(self.families, depth)) for depth in depths]
        return [
            [
                (*skills[:place], apart, *skills[place:])
                for apart in self.apart
                for skills in permutations(self.families, depth - 1)
                for place in range(depth)
            ]
            for depth in depths
        ]

    def draw(self, rng: random.Random) -> Signature:
        """One signature by weight."""
        return pick(rng, self._cumulative, self.weighted)

    @cached_property
    def _cumulative(self) -> tuple[int, ...]:
        return tuple(accumulate(weight for _, weight in self.weighted))

    def allowed(self, withheld: frozenset[str]) -> tuple[tuple[Signature, int], ...]:
        """Signatures for demonstrations: no family set apart, no key among `withheld`."""
        return tuple(
            (signature, weight)
            for signature, weight in self.weighted
            if withheld.isdisjoint(signature.keys) and not set(signature.skills) & set(self.apart)
        )


_UNIT = 1_000_000


def pick(rng: random.Random, cumulative: Sequence[int], items: Sequence[tuple[Signature, int]]) -> Signature:
    """The item whose stretch of the cumulated weights a uniform draw falls into."""
    return rng.choices(items, cum_weights=cumulative)[0][0]
