"""Near-duplicates inside the registry: rejected only by direct, verified similarity; joined by chains for splits.

Texts are compared as a generator wrote them for this purpose (slots and solution, not the frame), case and
punctuation included: tasks that share a template are no duplicates of each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from factory.core.assessment import Evidence
from factory.core.digest import Digest
from filters.contamination.index import IndexConfig, ShingleIndex, Similarity
from filters.contamination.normalise import text_digest
from filters.contamination.shingles import ShingleKind, symbol_shingles


@dataclass(frozen=True, kw_only=True)
class DuplicateConfig:
    """When two tasks are one too many. Shares are in [0, 1]."""

    length: int = 5
    """Words and punctuation marks in one shingle."""
    reject: float = 0.95
    """Jaccard similarity from which a later task is rejected."""
    join: float = 0.6
    """Jaccard similarity from which two tasks must stand on one side of every split."""
    join_contained: float = 0.8
    """Containment from which they must, where LSH proposes the pair (0.98 at Jaccard 0.5, 0.46 at 0.3)."""
    minimum_symbols: int = 24
    """Texts with fewer words and marks are compared exactly only."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where one text stands among those that came before it."""

    exact: Digest | None
    """A task with the same text."""
    near: tuple[Similarity, ...]
    """Verified neighbours from `join` on, most similar first."""
    keys: tuple[str, ...]
    """Split keys of the clusters that it belongs to: its neighbours' own, or one that it founds."""
    too_short: bool


class DuplicateIndex:
    """Texts of known tasks, by digest. The same texts in the same order give the same keys.

    A text keeps its keys for ever: one that later joins two clusters carries the keys of both, so that the
    split, which takes everything that shares a key whole, sees the chain. One writer at a time.
    """

    def __init__(self, config: DuplicateConfig | None = None) -> None:
        self.config = config or DuplicateConfig()
        self._index = ShingleIndex(IndexConfig(kind=ShingleKind.SYMBOLS, length=self.config.length))
        self._texts: dict[Digest, Digest] = {}
        self._keys: dict[Digest, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, task: Digest) -> bool:
        return task in self._keys

    def query(self, text: str, *, apart_from: Digest = "") -> Placement:
        """Where `text` would stand. `apart_from` is left out of its neighbours."""
        digest = text_digest(text)
        count, shingles = symbol_shingles(text, self.config.length)
        too_short = count < self.config.minimum_symbols
        pairs = [] if too_short else self._index.query(shingles)
        near = tuple(pair for pair in pairs if pair.key != apart_from and self._joins(pair))
        exact = self._texts.get(digest)
        exact = None if exact == apart_from else exact
        neighbours = [*([exact] if exact else []), *(pair.key for pair in near)]
        keys = sorted({key for task in neighbours for key in self._keys[task]})
        return Placement(exact=exact, near=near, keys=tuple(keys) or (f"cluster:{digest}",), too_short=too_short)

    def add(self, task: Digest, text: str) -> Placement:
        """Place a task and remember it; a task that is known keeps its place."""
        if task in self._keys:
            placement = self.query(text, apart_from=task)
            return Placement(exact=placement.exact, near=placement.near, keys=self._keys[task], too_short=placement.too_short)
        placement = self.query(text)
        self.restore(task, text, placement.keys)
        return placement

    def judge(self, placement: Placement) -> Evidence:
        """Reject an exact duplicate and a direct neighbour from `reject` on; never a chain."""
        close = [pair for pair in placement.near if pair.jaccard >= self.config.reject]
        reason = ""
        if placement.exact:
            reason = f"its text is that of task {placement.exact[:12]}"
        elif close:
            reason = f"its text is nearly that of task {close[0].key[:12]} (Jaccard {close[0].jaccard:.3f})"
        rule = (
            f"no earlier task has the same text or, from {self.config.minimum_symbols} words and marks, Jaccard >= "
            f"{self.config.reject} of {self.config.length}-symbol shingles"
        )
        data: dict[str, object] = {
            "index": self._index.config.digest,
            "exact": placement.exact,
            "near": [
                {"task": pair.key, "jaccard": round(pair.jaccard, 4), "contained": round(pair.contained, 4)}
                for pair in placement.near[:5]
            ],
            "neighbours": len(placement.near),
            "keys": list(placement.keys),
            "too_short_to_judge": placement.too_short,
        }
        return Evidence(filter="duplicates", rule=rule, passed=not reason, reason=reason, data=data)

    def restore(self, task: Digest, text: str, keys: Iterable[str]) -> None:
        """Remember a task of the registry with the keys that it was given there. A known task is left alone."""
        if task in self._keys:
            return
        digest = text_digest(text)
        self._texts.setdefault(digest, task)
        self._keys[task] = tuple(key for key in keys if key.startswith("cluster:")) or (f"cluster:{digest}",)
        count, shingles = symbol_shingles(text, self.config.length)
        if count >= self.config.minimum_symbols:
            self._index.add(task, shingles)

    def _joins(self, pair: Similarity) -> bool:
        return pair.jaccard >= self.config.join or max(pair.contained, pair.within) >= self.config.join_contained
