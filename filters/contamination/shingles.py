"""Shingles: hashed n-grams of a document, in the three kinds that are compared.

words     normalised words: prose, and whatever is no Python
python    identifier-blind tokens of one unit of Python code
symbols   words and punctuation with their case: near-duplicates inside the registry
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from factory.core.digest import Digest
from filters.contamination.code import units
from filters.contamination.normalise import symbols, words, words_digest

Shingles: TypeAlias = npt.NDArray[np.uint64]
"""Sorted, distinct 64-bit hashes; two different n-grams share one with probability 2^-64."""
HASH = "blake2b-64"


class ShingleKind(StrEnum):
    """What the n-grams are made of."""

    WORDS = "words"
    PYTHON = "python"
    SYMBOLS = "symbols"


def shingle(items: Sequence[str], length: int) -> Shingles:
    """The set of `length`-grams of `items`; empty when there are fewer than `length`."""
    grams = {"\x1f".join(items[start : start + length]) for start in range(len(items) - length + 1)}
    hashes = [hashlib.blake2b(gram.encode("utf-8", errors="surrogatepass"), digest_size=8).digest() for gram in grams]
    return np.sort(np.frombuffer(b"".join(hashes), dtype=">u8").astype(np.uint64))


def common(left: Shingles, right: Shingles) -> int:
    """How many shingles two sets share."""
    return int(np.intersect1d(left, right, assume_unique=True).size)


@dataclass(frozen=True)
class CodeShingles:
    """One unit of code, ready to compare."""

    name: str
    tokens: int
    tree: Digest | None
    shingles: Shingles


@dataclass(frozen=True, kw_only=True)
class Document:
    """The forms of one text that contamination checks compare."""

    exact: Digest | None
    """Digest of the normalised words; None for a text without words."""
    word_count: int
    words: Shingles
    code: tuple[CodeShingles, ...]

    @classmethod
    def of(cls, text: str, length: int) -> Document:
        """Read `text`; shingles are `length`-grams."""
        found = words(text)
        code = tuple(CodeShingles(unit.name, len(unit.tokens), unit.tree, shingle(unit.tokens, length)) for unit in units(text))
        return cls(exact=words_digest(text), word_count=len(found), words=shingle(found, length), code=code)


def symbol_shingles(text: str, length: int) -> tuple[int, Shingles]:
    """Number of symbols in `text`, and their shingles."""
    found = symbols(text)
    return len(found), shingle(found, length)
