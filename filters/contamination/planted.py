"""Planted items: what a screen must find, and what it must not.

Positives are reference items disguised in the ways that have fooled real screens; negatives are real texts that
no evaluation holds: functions and prose of Python's standard library, and reference prompts with their words shuffled.
"""

from __future__ import annotations

import ast
import builtins
import random
import re
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from factory.core.streams import stream
from factory.core.syntax import parse_python
from filters.contamination.library import Library, library
from filters.contamination.normalise import words
from filters.contamination.references import ReferenceItem, ReferenceSet


@dataclass(frozen=True, kw_only=True)
class Plant:
    """One text with what is known of it."""

    kind: str
    """How it was disguised, or which negative it is."""
    length: str
    """`short` (under 20 words), `medium` (under 80) or `long`, of the reference item."""
    reference: str
    problem: str
    """The reference set and problem that it holds; both empty for a negative."""
    text: str
    core: str = ""
    """What of the text is the planted part, with nothing embedded around it."""
    view: str = "words"
    """The view that should find it: `words`; `tree` or `code` where its words are gone; `exact` for what is short."""


def positives(references: Sequence[ReferenceSet], *, seed: int, per_kind: int) -> list[Plant]:
    """At most `per_kind` plants of each kind from each set, spread over parts and lengths; deterministic."""
    filler = library()
    plants = []
    for reference in references:
        for kind, disguise in DISGUISES.items():
            rng = stream(seed, "planted", reference.name, kind)
            items = list(reference.items)
            rng.shuffle(items)
            taken = 0
            for item in items:
                disguised = disguise(item, rng, filler) if taken < per_kind else None
                if disguised is not None:
                    taken += 1
                    plants.append(_plant(kind, reference.name, item, disguised))
    return plants


EXACT = "exact"
"""The view of plants that no shingles can find."""
SHORT = "short, by exact form"
"""The kind of those plants."""


def short_positives(items: Sequence[tuple[str, ReferenceItem]], *, seed: int, most: int) -> list[Plant]:
    """At most `most` of the short `items` (reference set, item), each rewrapped or in another case; deterministic."""
    rng = stream(seed, "planted", SHORT)
    plants = []
    for reference, item in rng.sample(items, min(most, len(items))):
        text = rng.choice((_rewrapped, _case, _punctuation))(item.text, rng)
        plants.append(_plant(SHORT, reference, item, Disguised(text, text, view=EXACT)))
    return plants


def negatives(references: Sequence[ReferenceSet], *, seed: int, per_kind: int) -> list[Plant]:
    """At most `per_kind` texts of each kind that hold nothing of the references."""
    known = library()
    found: dict[str, list[str]] = {"library code": list(known.functions), "library prose": list(known.prose)}
    rng = stream(seed, "planted", "negatives")
    found["shuffled words"] = [
        _shuffled(item.text, rng) for reference in references for item in reference.items if len(words(item.text)) >= 20
    ]
    plants = []
    for kind, texts in found.items():
        rng.shuffle(texts)
        plants += [Plant(kind=kind, length=length_of(text), reference="", problem="", text=text) for text in texts[:per_kind]]
    return plants


LENGTHS = ("short", "medium", "long")


def length_of(text: str) -> str:
    """The class of a text's length."""
    count = len(words(text))
    return "short" if count < 20 else "medium" if count < 80 else "long"


@dataclass(frozen=True)
class Disguised:
    """A disguised item, and the part of it that is not filler."""

    text: str
    core: str
    view: str = "words"


def _changed(change: Callable[[str, random.Random], str]) -> Disguise:
    def disguise(item: ReferenceItem, rng: random.Random, filler: Library) -> Disguised:
        text = change(item.text, rng)
        return Disguised(text, text)

    return disguise


def _rewrapped(text: str, rng: random.Random) -> str:
    return textwrap.fill(" ".join(text.split()), width=rng.randint(24, 60), break_long_words=False, break_on_hyphens=False)


def _case(text: str, rng: random.Random) -> str:
    return rng.choice((str.upper, str.lower, str.title))(text)


def _punctuation(text: str, rng: random.Random) -> str:
    """Every run of punctuation becomes another: quotes and dashes of print, zero-width characters between words."""
    marks = ("; ", " - ", "… ", " “", "” ", " • ", " \u200b")
    return re.sub(r"[^\w\s]+", lambda _: rng.choice(marks), text)


def _full_width(text: str, rng: random.Random) -> str:
    """What NFKC folds and a plain comparison does not."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" and unicodedata.category(c) != "Nd" else c for c in text)


def _most(text: str, rng: random.Random) -> str:
    """The first 70 % of the words."""
    found = text.split()
    return " ".join(found[: max(1, round(0.7 * len(found)))])


def _prose_embedded(item: ReferenceItem, rng: random.Random, filler: Library) -> Disguised:
    """In the middle of unrelated prose, five times as long at least."""
    before: list[str] = []
    after: list[str] = []
    while sum(len(words(text)) for text in (*before, *after)) < 5 * len(words(item.text)):
        (before if rng.random() < 0.5 else after).append(rng.choice(filler.prose))
    return Disguised("\n\n".join([*before, item.text, *after]), item.text)


def _code_embedded(item: ReferenceItem, rng: random.Random, filler: Library) -> Disguised | None:
    """One function, its docstring removed, among six unrelated ones."""
    function = _bare(item)
    if function is None:
        return None
    functions = [rng.choice(filler.functions) for _ in range(6)]
    functions.insert(rng.randint(0, 6), function)
    return Disguised("\n\n\n".join(functions), function, view="tree")


def _renamed(item: ReferenceItem, rng: random.Random, filler: Library) -> Disguised | None:
    """One function without docstring, comments and layout, every name but builtins and attributes replaced."""
    function = _bare(item)
    if function is None:
        return None
    renamed = rename(function, rng)
    return Disguised(renamed, renamed, view="tree")


def _edited(item: ReferenceItem, rng: random.Random, filler: Library) -> Disguised | None:
    """Renamed as above, with one more statement in its body: no two syntax trees are equal any more."""
    function = _bare(item)
    if function is None:
        return None
    tree = parse_python(rename(function, rng))
    assert isinstance(tree.body[0], ast.FunctionDef)
    body = tree.body[0].body
    body.insert(rng.randint(0, len(body) - 1), parse_python(f"note_ = {rng.randint(2, 99)}").body[0])
    edited = ast.unparse(tree)
    return Disguised(edited, edited, view="code")


Disguise = Callable[[ReferenceItem, random.Random, Library], Disguised | None]
DISGUISES: dict[str, Disguise] = {
    "verbatim": _changed(lambda text, rng: text),
    "rewrapped": _changed(_rewrapped),
    "case changed": _changed(_case),
    "punctuation changed": _changed(_punctuation),
    "full-width characters": _changed(_full_width),
    "70 % of it": _changed(_most),
    "embedded in prose": _prose_embedded,
    "embedded in code": _code_embedded,
    "identifiers renamed": _renamed,
    "renamed and edited": _edited,
}
"""How reference items are disguised; None where a disguise does not apply to an item."""


def rename(source: str, rng: random.Random) -> str:
    """Python `source` with every name that is not a builtin, an attribute or a module replaced by a made-up one."""
    tree = parse_python(source)
    imports = [alias for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    _Renamer(rng, frozenset(alias.asname or alias.name for alias in imports)).visit(tree)
    return ast.unparse(tree)


class _Renamer(ast.NodeTransformer):
    def __init__(self, rng: random.Random, modules: frozenset[str]) -> None:
        self._rng, self._modules = rng, modules
        self._names: dict[str, str] = {}

    def _new(self, name: str) -> str:
        if hasattr(builtins, name) or name in self._modules:
            return name
        if name not in self._names:
            letters = (self._rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(self._rng.randint(3, 9)))
            self._names[name] = "".join(letters) + "_"
        return self._names[name]

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._new(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._new(node.arg)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._new(node.name)
        return self.generic_visit(node)


def _bare(item: ReferenceItem) -> str | None:
    """The item's last function (earlier ones are helpers) without docstrings; None where it defines none with a body."""
    if item.part != "function":
        return None
    functions = [node for node in parse_python(item.text).body if isinstance(node, ast.FunctionDef)]
    if not functions:
        return None
    for node in ast.walk(functions[-1]):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(functions[-1])


def _shuffled(text: str, rng: random.Random) -> str:
    found = text.split()
    rng.shuffle(found)
    return textwrap.fill(" ".join(found), width=80)


def _plant(kind: str, reference: str, item: ReferenceItem, disguised: Disguised) -> Plant:
    return Plant(
        kind=kind,
        length=length_of(item.text),
        reference=reference,
        problem=item.problem,
        text=disguised.text,
        core=disguised.core,
        view=disguised.view,
    )
