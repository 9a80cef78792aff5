"""An index of shingle sets: candidates from LSH (and, for containment, from postings), each verified exactly.

Bands and rows are fixed: an optimiser that picks them for a threshold trades recall away at that very
threshold. Two sets of Jaccard similarity s become candidates with probability 1 - (1 - s^r)^b (Leskovec,
Rajaraman, Ullman, Mining of Massive Datasets, 3.4.2): with 64 bands of 4 rows 0.98 at s = 0.5.

A set can lie inside a much larger one at a similarity near zero, where LSH is blind; postings (which document holds
which shingle) find those exactly, at 12 bytes a shingle. They are for reference sets, which fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from datasketch import MinHash, MinHashLSH

from factory.core.digest import Digest, digest_of
from filters.contamination.code import LEXER
from filters.contamination.normalise import NORMALISER
from filters.contamination.shingles import HASH, ShingleKind, Shingles, common


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """What makes two indexes comparable; all of it is in the index digest."""

    kind: ShingleKind
    length: int = 5
    """Items in one shingle."""
    bands: int = 64
    rows: int = 4
    """Rows of one band; `bands * rows` permutations."""
    seed: int = 1
    """Seed of the permutations."""
    scheme: str = "affine32"
    """Permutation scheme of datasketch."""

    @property
    def digest(self) -> Digest:
        """Names the parameters, the hash, the normaliser and the lexer: sketches of two digests never meet."""
        return digest_of({**asdict(self), "hash": HASH, "normaliser": NORMALISER, "lexer": LEXER})


@dataclass(frozen=True, kw_only=True)
class Similarity:
    """One verified pair: a stored set against the set that was asked about."""

    key: str
    jaccard: float
    contained: float
    """Share of the stored set that lies in the asked one."""
    within: float
    """Share of the asked set that lies in the stored one."""
    routes: tuple[str, ...]
    """What proposed the pair: `lsh`, `postings`."""

    @property
    def largest(self) -> float:
        return max(self.jaccard, self.contained, self.within)


def _identity(value: int) -> int:
    return value


class ShingleIndex:
    """Shingle sets by key. Empty sets are kept as keys and match nothing."""

    def __init__(self, config: IndexConfig, *, postings: bool = False) -> None:
        self.config = config
        self._prototype = MinHash(
            num_perm=config.bands * config.rows, seed=config.seed, scheme=config.scheme, hashfunc=_identity
        )
        self._lsh = MinHashLSH(num_perm=config.bands * config.rows, params=(config.bands, config.rows))
        self._keys: list[str] = []
        self._known: set[str] = set()
        self._sets: list[Shingles] = []
        self._postings: tuple[Shingles, npt.NDArray[np.int32]] | None = None
        self._with_postings = postings

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def add(self, key: str, shingles: Shingles) -> None:
        """Store a set. Raises ValueError for a key that is there already."""
        if key in self._known:
            raise ValueError(f"{key} is in the index already")
        number = len(self._keys)
        self._known.add(key)
        self._keys.append(key)
        self._sets.append(shingles)
        self._postings = None
        if shingles.size:
            self._lsh.insert(number, self._minhash(shingles), check_duplication=False)

    def query(self, shingles: Shingles, least: float = 0.0) -> list[Similarity]:
        """Every candidate with its exact similarity, most similar first (ties by key).

        Pairs of which neither the Jaccard similarity nor a containment reaches `least` are left out. Postings count
        what is shared exactly, so LSH is asked only what it would have proposed of the pairs that are left.
        """
        if not shingles.size or not self._keys:
            return []
        pairs: dict[int, Similarity] = {}
        if self._with_postings:
            for number, shared in self._holders(shingles):
                pairs[number] = self._pair(number, shingles, shared, ("postings",))
            pairs = {number: pair for number, pair in pairs.items() if pair.largest >= least}
        if pairs or not self._with_postings:
            for number in self.proposals(shingles):
                routes = ("lsh", *(pairs[number].routes if number in pairs else ()))
                pairs[number] = self._pair(number, shingles, common(self._sets[number], shingles), routes)
        found = [pair for pair in pairs.values() if pair.largest >= least]
        return sorted(found, key=lambda pair: (-max(pair.jaccard, pair.contained), pair.key))

    def proposals(self, shingles: Shingles) -> list[int]:
        """Numbers of the stored sets that share a band with `shingles`."""
        return sorted(self._lsh.query(self._minhash(shingles))) if shingles.size else []

    def _minhash(self, shingles: Shingles) -> MinHash:
        sketch = self._prototype.copy()
        sketch.update_batch((shingles & np.uint64(0xFFFFFFFF)).tolist())
        return sketch

    def _holders(self, shingles: Shingles) -> Iterable[tuple[int, int]]:
        """Numbers of the stored sets that share any shingle, each with how many it shares."""
        if self._postings is None:
            flat = np.concatenate(self._sets)
            owners = np.repeat(np.arange(len(self._sets), dtype=np.int32), [item.size for item in self._sets])
            order = np.argsort(flat, kind="stable")
            self._postings = flat[order], owners[order]
        hashes, owners = self._postings
        left, right = np.searchsorted(hashes, shingles, "left"), np.searchsorted(hashes, shingles, "right")
        hit = right > left
        hits = [owners[start:end] for start, end in zip(left[hit].tolist(), right[hit].tolist(), strict=True)]
        if not hits:
            return []
        numbers, shared = np.unique(np.concatenate(hits), return_counts=True)
        return zip(numbers.tolist(), shared.tolist(), strict=True)

    def _pair(self, number: int, shingles: Shingles, shared: int, routes: tuple[str, ...]) -> Similarity:
        stored = self._sets[number]
        return Similarity(
            key=self._keys[number],
            jaccard=shared / (stored.size + shingles.size - shared),
            contained=shared / stored.size,
            within=shared / shingles.size,
            routes=routes,
        )
