"""The names that synthesized tasks draw: two syllables each, partitioned into pools.

One inventory of syllables serves every room, so that a tokenizer that knows the syllables sees
exactly two tokens in any name. A name belongs to one room and there to one pool, decided by its own
digest: no name occurs in two pools, whatever the seed. A family of skills that is set apart has a
reserve of its own, which nothing else uses even where the family is not set apart.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import lru_cache

from factory.core.errors import GeneratorError

CONSONANTS = "bdfghklmnprstvz"
VOWELS = "aeiou"
SYLLABLES: tuple[str, ...] = tuple(consonant + vowel for consonant in CONSONANTS for vowel in VOWELS)

WORDS = frozenset({"base", "data", "file", "like", "line", "make", "more", "move", "name", "none", "same", "take", "time"})
"""Words of instructions and commands that have the form of a name: never drawn as one."""

ROOMS = ("terminal", "database")
RESERVES = 16
"""Families of one room that can have a reserve of names."""
LEFT = 6
"""Names of a pool that no task takes as slots: contents draw their words from them at least."""
SHARES = 64
"""A room's names fall into this many equal shares: one for each reserve, the rest for the pools."""


def split_digest(purpose: str, text: str) -> int:
    """A number decided by `text` alone, of its own for each purpose."""
    return int.from_bytes(hashlib.sha256(f"{purpose}\x1f{text}".encode()).digest()[:8], "big")


@lru_cache(maxsize=16)
def partition(room: str, pools: int) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
    """The names of `room`: its `pools` pools and its RESERVES reserves, each sorted."""
    shared: list[list[str]] = [[] for _ in range(pools)]
    reserved: list[list[str]] = [[] for _ in range(RESERVES)]
    for name in (first + second for first in SYLLABLES for second in SYLLABLES):
        number = split_digest("name", name)
        if name in WORDS or ROOMS[number % len(ROOMS)] != room:
            continue
        number //= len(ROOMS)
        share = number % SHARES
        (reserved[share] if share < RESERVES else shared[number // SHARES % pools]).append(name)
    return tuple(map(tuple, shared)), tuple(map(tuple, reserved))


class Names:
    """Draws names of one pool for one task: `fresh` never repeats, `word` may."""

    def __init__(self, pool: Sequence[str], rng: random.Random) -> None:
        self._pool, self._rng = pool, rng
        self._taken: set[str] = set()

    def forked(self, rng: random.Random) -> Names:
        """Names of the same pool from another stream, clear of those taken so far."""
        fork = Names(self._pool, rng)
        fork._taken = set(self._taken)
        return fork

    @property
    def rng(self) -> random.Random:
        """The stream that the names come from."""
        return self._rng

    def fresh(self) -> str:
        """A name that was not drawn before. Raises GeneratorError when the pool has hardly any left."""
        if len(self._taken) > len(self._pool) - LEFT:
            raise GeneratorError(f"a pool of {len(self._pool)} names is too small for a task of this depth")
        while True:
            name = self._pool[int(self._rng.random() * len(self._pool))]
            if name not in self._taken:
                self._taken.add(name)
                return name

    def word(self) -> str:
        """A name for content; it may equal another word, never a fresh name drawn so far."""
        while True:
            name = self._pool[int(self._rng.random() * len(self._pool))]
            if name not in self._taken:
                return name
