"""An index of shingle sets: candidates from LSH (and, for containment, from postings), each verified exactly.

Bands and rows are fixed: an optimiser that picks them for a threshold trades recall away at that very
threshold. Two sets of Jaccard similarity s become candidates with probability 1 - (1 - s^r)^b (Leskovec,
Rajaraman, Ullman, Mining of Massive Datasets, 3.4.2): with 64 bands of 4 rows 0.98 at s = 0.5.

A set can lie inside a much larger one at a similarity near zero, where LSH is blind; postings (which document holds
which shingle) find those exactly, at 12 bytes a shingle. They are for reference sets, which fit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from datasketch import MinHash, MinHashLSH

from factory.core.digest import Digest, digest_of
from factory.core.errors import UserError
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
        self._known: dict[str, int] = {}
        self._sets: list[Shingles] = []
        self._sketches: list[npt.NDArray[np.uint32] | None] = []
        self._postings: tuple[Shingles, npt.NDArray[np.int32]] | None = None
        self._with_postings = postings

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def add(self, key: str, shingles: Shingles) -> None:
        """Store a set. Raises ValueError for a key that is there already."""
        self._insert(key, shingles, self._sketch(shingles))

    def query(self, shingles: Shingles) -> list[Similarity]:
        """Every candidate with its exact similarity, most similar first (ties by key)."""
        if not shingles.size or not self._keys:
            return []
        routes: dict[int, list[str]] = {}
        for number in self.proposals(shingles):
            routes.setdefault(number, []).append("lsh")
        if self._with_postings:
            for number in self._holders(shingles):
                routes.setdefault(number, []).append("postings")
        pairs = (self._verify(number, shingles, tuple(found)) for number, found in routes.items())
        return sorted(pairs, key=lambda pair: (-max(pair.jaccard, pair.contained), pair.key))

    def proposals(self, shingles: Shingles) -> list[int]:
        """Numbers of the stored sets that share a band with `shingles`."""
        return sorted(self._lsh.query(self._minhash(self._sketch(shingles)))) if shingles.size else []

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Sets and sketches with the index digest, as plain arrays (nothing executable) for `numpy.savez`."""
        header = {"digest": self.config.digest, "postings": self._with_postings}
        size = self.config.bands * self.config.rows
        sketches = [np.zeros(size, np.uint32) if sketch is None else sketch for sketch in self._sketches]
        return {
            "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
            "keys": np.array(self._keys, dtype=np.str_),
            "shingles": np.concatenate([*self._sets, np.empty(0, np.uint64)]),
            "sizes": np.array([item.size for item in self._sets], np.int64),
            "sketches": np.array(sketches, np.uint32).reshape(len(sketches), size),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], config: IndexConfig) -> ShingleIndex:
        """Rebuild an index. Raises UserError when its digest is not that of `config`: its sketches would compare as noise."""
        header: dict[str, Any] = json.loads(arrays["header"].tobytes())
        if header["digest"] != config.digest:
            raise UserError("index", header["digest"][:12], f"an index of digest {config.digest[:12]}")
        index = cls(config, postings=header["postings"])
        sets = np.split(arrays["shingles"], np.cumsum(arrays["sizes"])[:-1]) if arrays["sizes"].size else []
        for key, shingles, sketch in zip(arrays["keys"].tolist(), sets, arrays["sketches"], strict=True):
            index._insert(key, shingles, sketch if shingles.size else None)
        return index

    def _insert(self, key: str, shingles: Shingles, sketch: npt.NDArray[np.uint32] | None) -> None:
        if key in self._known:
            raise ValueError(f"{key} is in the index already")
        number = len(self._keys)
        self._known[key] = number
        self._keys.append(key)
        self._sets.append(shingles)
        self._sketches.append(sketch)
        self._postings = None
        if sketch is not None:
            self._lsh.insert(number, self._minhash(sketch), check_duplication=False)

    def _sketch(self, shingles: Shingles) -> npt.NDArray[np.uint32] | None:
        if not shingles.size:
            return None
        sketch = self._prototype.copy()
        sketch.update_batch((shingles & np.uint64(0xFFFFFFFF)).tolist())
        return np.asarray(sketch.hashvalues, np.uint32)

    def _minhash(self, sketch: npt.NDArray[np.uint32] | None) -> MinHash:
        assert sketch is not None, "an empty set has no sketch"
        return MinHash(
            seed=self.config.seed,
            scheme=self.config.scheme,
            hashfunc=_identity,
            hashvalues=sketch,
            permutations=self._prototype.permutations,
        )

    def _holders(self, shingles: Shingles) -> Iterable[int]:
        """Numbers of the stored sets that share any shingle."""
        if self._postings is None:
            flat = np.concatenate(self._sets)
            owners = np.repeat(np.arange(len(self._sets), dtype=np.int32), [item.size for item in self._sets])
            order = np.argsort(flat, kind="stable")
            self._postings = flat[order], owners[order]
        hashes, owners = self._postings
        left, right = np.searchsorted(hashes, shingles, "left"), np.searchsorted(hashes, shingles, "right")
        hits = [owners[start:end] for start, end in zip(left, right, strict=True) if end > start]
        return np.unique(np.concatenate(hits)).tolist() if hits else []

    def _verify(self, number: int, shingles: Shingles, routes: tuple[str, ...]) -> Similarity:
        stored = self._sets[number]
        shared = common(stored, shingles)
        return Similarity(
            key=self._keys[number],
            jaccard=shared / (stored.size + shingles.size - shared),
            contained=shared / stored.size,
            within=shared / shingles.size,
            routes=routes,
        )
