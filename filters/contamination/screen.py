"""The contamination screen: does a task hold the text or the code of a public evaluation?

Every candidate pair from the indexes is verified exactly before it says anything. What is too short for
shingles is compared by exact forms only, and listed as such: silence about it is not a clean bill.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from factory.core.digest import Digest, digest_of
from filters.contamination.index import IndexConfig, ShingleIndex, Similarity
from filters.contamination.normalise import words, words_digest
from filters.contamination.references import ReferenceItem, ReferenceSet
from filters.contamination.shingles import Document, ShingleKind, Shingles


@dataclass(frozen=True, kw_only=True)
class ContaminationConfig:
    """When a verified similarity is a match. Shares are in [0, 1].

    Over 1,064 functions of the standard library against HumanEval the largest Jaccard similarity of code was 0.14 and the
    largest containment 0.54; renamed functions with one statement added have 0.45 and 0.65 or more in 127 of 131 cases.
    """

    length: int = 5
    """Items in one shingle."""
    words: float = 0.5
    """Jaccard similarity of words from which a text matches."""
    words_contained: float = 0.6
    """Share of either text's word shingles inside the other from which a text matches."""
    code: float = 0.45
    """Jaccard similarity of identifier-blind tokens from which a unit of code matches."""
    code_review: float = 0.35
    """The same, from which it is shown for review without rejecting."""
    code_contained: float = 0.65
    """Share of the reference unit's shingles inside the candidate's unit from which it matches."""
    minimum_words: int = 12
    """References with fewer distinct word shingles are compared by their exact normalised form only; texts with fewer
    are not looked for inside references."""
    minimum_value: int = 3
    """Words of the shortest value inside a file (a cell, a string) whose exact form is compared: one word is anyone's."""
    minimum_code: int = 24
    """Units of code with fewer distinct token shingles are compared by their syntax tree only."""
    minimum_tree: int = 24
    """Units of code with fewer tokens are too short even for that: `return x + y` is anyone's."""
    frame: float = 0.1
    """A shingle that occurs in a larger share of a reference set's problems is the set's frame (headers, imports,
    the shape of its tests) and is compared nowhere."""
    frame_problems: int = 5
    """The same, as a number of problems: in no more than this many nothing is frame."""
    shown: int = 5
    """Most matches that evidence lists."""


@dataclass(frozen=True, kw_only=True)
class Match:
    """One verified finding."""

    reference: str
    problem: str
    part: str
    view: str
    """`exact`, `words`, `tree` or `code`."""
    jaccard: float
    contained: float
    """Share of the reference inside the candidate."""
    within: float
    """Share of the candidate inside the reference."""
    routes: tuple[str, ...]
    """What proposed it: `exact`, `tree`, `lsh`, `postings`."""
    rejects: bool
    """False: for review only."""

    @property
    def largest(self) -> float:
        return max(self.jaccard, self.contained, self.within)

    def record(self) -> dict[str, Any]:
        """JSON, shares to four digits."""
        value = asdict(self) | {"routes": list(self.routes)}
        return value | {name: round(value[name], 4) for name in ("jaccard", "contained", "within")}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the screen says of one text."""

    matches: tuple[Match, ...]
    """Most similar first, those that reject before those for review; one of each view for each part of a problem."""
    judged: frozenset[str]
    """The views (`words`, `tree`, `code`) in which the text is long enough to say anything."""

    @classmethod
    def of(cls, matches: Iterable[Match], judged: Iterable[str]) -> Findings:
        found = sorted(matches, key=lambda m: (not m.rejects, -m.largest, m.reference, m.problem, m.part))
        once: dict[tuple[str, ...], Match] = {}
        for match in found:
            once.setdefault((match.reference, match.problem, match.part, match.view), match)
        return cls(matches=tuple(once.values()), judged=frozenset(judged))

    @classmethod
    def together(cls, findings: Iterable[Findings]) -> Findings:
        """Of several texts that belong together."""
        each = tuple(findings)
        return cls.of((match for one in each for match in one.matches), (view for one in each for view in one.judged))

    @property
    def too_short(self) -> bool:
        """Only its exact form could be compared."""
        return not self.judged

    @property
    def rejecting(self) -> tuple[Match, ...]:
        return tuple(match for match in self.matches if match.rejects)


class ContaminationScreen:
    """Compares texts with reference sets. Read-only once built; safe for several threads."""

    def __init__(self, references: Sequence[ReferenceSet], config: ContaminationConfig | None = None) -> None:
        self.config = config or ContaminationConfig()
        self.references = tuple(references)
        self._words = ShingleIndex(IndexConfig(kind=ShingleKind.WORDS, length=self.config.length), postings=True)
        self._code = ShingleIndex(IndexConfig(kind=ShingleKind.PYTHON, length=self.config.length), postings=True)
        self._exact: dict[Digest, list[str]] = {}
        self._trees: dict[Digest, list[str]] = {}
        self._items: dict[str, tuple[str, ReferenceItem]] = {}
        self.too_short: dict[str, tuple[str, ReferenceItem]] = {}
        """Reference items that only an exact form can find, by `set/problem/part`, each with its set."""
        read = [
            (reference.name, item, Document.of(item.text, self.config.length))
            for reference in self.references
            for item in reference.items
        ]
        self._frame = _frame(read, self.config)
        for name, item, document in read:
            self._add(name, item, self._framed(document))
        self.digest = digest_of(
            {
                "words": self._words.config.digest,
                "code": self._code.config.digest,
                "references": [reference.digest for reference in self.references],
                "config": {name: str(value) for name, value in asdict(self.config).items()},
            }
        )

    @property
    def rule(self) -> str:
        """The rule in words."""
        c = self.config
        return (
            f"no reference matches: same normalised words; {c.length}-word shingles (at least {c.minimum_words}) with "
            f"Jaccard >= {c.words} or containment >= {c.words_contained}; same renamed syntax tree (at least {c.minimum_tree} "
            f"tokens); identifier-blind {c.length}-token shingles (at least {c.minimum_code}) with Jaccard >= {c.code} or "
            f"containment >= {c.code_contained}; shingles of more than {c.frame:.0%} of a set's problems are not compared"
        )

    def findings(self, text: str) -> Findings:
        """Every match of `text`, exact ones first, then by similarity."""
        config = self.config
        document = self._framed(Document.of(text, config.length))
        matches = self._exactly(document.exact)
        enough, least = document.words.size >= config.minimum_words, min(config.words, config.words_contained)
        matches += filter(None, (self._by_words(pair, enough) for pair in self._words.query(document.words, least)))
        for unit in document.code:
            if unit.tree is not None and unit.tokens >= config.minimum_tree:
                matches += [self._same(key, "tree") for key in self._trees.get(unit.tree, ())]
            if unit.shingles.size >= config.minimum_code:
                least = min(config.code_review, config.code_contained)
                matches += filter(None, map(self._by_code, self._code.query(unit.shingles, least)))
        return Findings.of(matches, self._judged(document))

    def same(self, text: str) -> Findings:
        """The matches of a value inside a file: by its exact form, from `minimum_value` words on."""
        enough = len(words(text)) >= self.config.minimum_value
        return Findings.of(self._exactly(words_digest(text)) if enough else [], ())

    def _exactly(self, exact: Digest | None) -> list[Match]:
        return [self._same(key, "exact") for key in self._exact.get(exact or "", ())]

    def _add(self, name: str, item: ReferenceItem, document: Document) -> None:
        config = self.config
        key = f"{name}/{item.problem}/{item.part}"
        if key in self._items:
            key = f"{key}#{len(self._items)}"
        self._items[key] = name, item
        if document.exact is not None:
            self._exact.setdefault(document.exact, []).append(key)
        if document.words.size >= config.minimum_words:
            self._words.add(key, document.words)
        for number, unit in enumerate(document.code):
            if unit.tree is not None and unit.tokens >= config.minimum_tree:
                self._trees.setdefault(unit.tree, []).append(key)
            if unit.shingles.size >= config.minimum_code:
                self._code.add(f"{key}\n{number}", unit.shingles)
        if not self._judged(document):
            self.too_short[key] = name, item

    def _framed(self, document: Document) -> Document:
        code = tuple(replace(unit, shingles=_without(unit.shingles, self._frame)) for unit in document.code)
        return replace(document, words=_without(document.words, self._frame), code=code)

    def _judged(self, document: Document) -> frozenset[str]:
        config = self.config
        long_enough = {
            "words": document.words.size >= config.minimum_words,
            "tree": any(unit.tokens >= config.minimum_tree for unit in document.code),
            "code": any(unit.shingles.size >= config.minimum_code for unit in document.code),
        }
        return frozenset(view for view, judged in long_enough.items() if judged)

    def _same(self, key: str, view: Literal["exact", "tree"]) -> Match:
        return self._match(key, view, Similarity(key=key, jaccard=1.0, contained=1.0, within=1.0, routes=(view,)), rejects=True)

    def _by_words(self, pair: Similarity, enough: bool) -> Match | None:
        """`enough`: the text has `minimum_words`; a shorter one may lie inside a reference by chance."""
        c = self.config
        if pair.jaccard < c.words and max(pair.contained, pair.within if enough else 0.0) < c.words_contained:
            return None
        return self._match(pair.key, "words", pair, rejects=True)

    def _by_code(self, pair: Similarity) -> Match | None:
        rejects = pair.jaccard >= self.config.code or pair.contained >= self.config.code_contained
        if not rejects and pair.jaccard < self.config.code_review:
            return None
        return self._match(pair.key.split("\n")[0], "code", pair, rejects=rejects)

    def _match(self, key: str, view: str, pair: Similarity, *, rejects: bool) -> Match:
        name, item = self._items[key]
        return Match(
            reference=name,
            problem=item.problem,
            part=item.part,
            view=view,
            jaccard=pair.jaccard,
            contained=pair.contained,
            within=pair.within,
            routes=pair.routes,
            rejects=rejects,
        )

    def sizes(self) -> dict[str, int]:
        """How many sets or forms each index holds."""
        return {
            "words": len(self._words),
            "code": len(self._code),
            "exact": len(self._exact),
            "trees": len(self._trees),
            "frame shingles": int(self._frame.size),
        }


def _frame(read: Sequence[tuple[str, ReferenceItem, Document]], config: ContaminationConfig) -> Shingles:
    """The shingles that a set's problems share: its frame, not its content."""
    holders: dict[str, dict[str, list[Shingles]]] = {}
    for name, item, document in read:
        sets = holders.setdefault(name, {}).setdefault(item.problem, [])
        sets += [document.words, *(unit.shingles for unit in document.code)]
    frames = [np.empty(0, np.uint64)]
    for problems in holders.values():
        each = [np.unique(np.concatenate(sets)) for sets in problems.values()]
        hashes, counts = np.unique(np.concatenate(each), return_counts=True)
        frames.append(hashes[counts > max(config.frame * len(problems), config.frame_problems)])
    return np.unique(np.concatenate(frames))


def _without(shingles: Shingles, frame: Shingles) -> Shingles:
    return np.setdiff1d(shingles, frame, assume_unique=True)
