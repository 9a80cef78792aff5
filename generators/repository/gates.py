"""What an instruction must not say, and what it must: the fix is nowhere in it, the symptom is.

A secret is what only the fix has: lines, names, values and turns of code that stand neither in the broken files nor in
the failing tests that the text may show.
"""

from __future__ import annotations

import builtins
import difflib
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from generators.repository.evidence import Evidence
from generators.repository.sites import Edit

SECRET = 4
"""Fixed lines and string values with fewer characters are no secret."""
TURN = 3
"""Tokens of the shortest turn of code that is a secret."""
_TOKEN = re.compile(r"[^\W\d]\w*|\d+(?:\.\d+)?|(?:==|!=|<=|>=|\*\*|//|->|:=|<<|>>|[-+*/%@&|^]=)|[^\w\s]")
_STRING = re.compile(r"(\"\"\"|'''|\"|')((?:\\.|(?!\1).)*)\1")
_OWN = frozenset({"assert", "raises", "pytest", "self", "isinstance", "len", "type", "list", "dict", "str", "repr", "sorted"})
"""Called in tests of anything: they name no symptom."""
_NO_KIND = frozenset({"AssertionError", "Failed"})
"""Exceptions of the tests, not of what is tested."""


@dataclass(frozen=True, kw_only=True)
class Secret:
    """What only the fix has."""

    lines: tuple[str, ...]
    """Whole lines, blanks squeezed."""
    names: frozenset[str]
    values: frozenset[str]
    """Numbers, and contents of strings."""
    turns: frozenset[tuple[str, ...]]
    """Three tokens in a row, a changed one among them."""


def secret_of(wrong: Sequence[str], right: Sequence[str], known: Iterable[str], shown: str) -> Secret:
    """The secret of a fix that puts the lines `right` in place of the lines `wrong`.

    `known` are the files of the broken tree that count, the edited one among them; `shown` what failing tests show.
    """
    texts = [*known]
    lines = {_squeezed(line) for text in texts for line in text.split("\n")}
    runs = [_TOKEN.findall(text) for text in (*texts, shown)]
    tokens = {token for run in runs for token in run}
    rows = [f" {' '.join(run)} " for run in runs]
    strings = {value for text in (*texts, shown) for _, value in _STRING.findall(text)}
    fixed = "\n".join(right)
    names = {name for name in _TOKEN.findall(_STRING.sub(" ", fixed)) if name.isidentifier() and len(name) >= 3}
    numbers = {number for number in _TOKEN.findall(_STRING.sub(" ", fixed)) if number[0].isdigit() and len(number) >= 2}
    values = {value for _, value in _STRING.findall(fixed) if len(value) >= SECRET}
    return Secret(
        lines=tuple(line for line in map(_squeezed, right) if len(line) >= SECRET and line not in lines),
        names=frozenset(names - tokens - set(keyword.kwlist)),
        values=frozenset((numbers - tokens) | (values - strings)),
        turns=frozenset(
            turn for turn in _turns("\n".join(wrong), fixed) if not any(f" {' '.join(turn)} " in row for row in rows)
        ),
    )


def leak(text: str, secret: Secret) -> str:
    """What of a secret a text gives away: `line`, `name`, `value` or `turn`; empty when nothing."""
    flat, tokens = _squeezed(text), _TOKEN.findall(text)
    if any(line in flat for line in secret.lines):
        return "line"
    if any(_named(name, text) for name in secret.names):
        return "name"
    if any(_stands(value, text) for value in secret.values):
        return "value"
    return "turn" if not secret.turns.isdisjoint(_rows(tokens)) else ""


def _named(name: str, text: str) -> bool:
    """Whether a text has a name. One that could be a plain word counts where it stands as code: quoted, called, dotted."""
    word = re.escape(name)
    if name.isalpha() and name.islower():
        return re.search(rf"[`'\".]{word}\b|\b{word}(?:[`'\"(]|\s*=)", text) is not None
    return re.search(rf"(?<!\w){word}(?!\w)", text) is not None


def _turns(wrong: str, right: str) -> set[tuple[str, ...]]:
    """Runs of `TURN` tokens of the fix that hold a changed token, or the seam where some were taken out, and code signs."""
    before, after = _TOKEN.findall(wrong), _TOKEN.findall(right)
    found = set()
    for tag, _, _, start, end in difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for first in range(max(0, start - TURN + 1), max(start, end - 1) + 1):
            turn = tuple(after[first : first + TURN])
            if len(turn) == TURN and any(_is_word(token) for token in turn) and not all(_is_word(token) for token in turn):
                found.add(turn)
    return found


def _rows(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(tokens[start : start + TURN]) for start in range(len(tokens) - TURN + 1))


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "_"


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def symptoms(shown: Evidence) -> frozenset[str]:
    """Tokens of the evidence that name behaviour: exceptions, called functions, attributes, values."""
    found = {one.type for one in (shown, *shown.others)} - _NO_KIND
    for one in (shown, *shown.others):
        code = f"{one.setup}\n{one.statement}"
        found |= {name for name in re.findall(r"\b([^\W\d]\w*)\s*\(", code) if not name.startswith("assert")}
        found |= set(re.findall(r"\.([^\W\d]\w*)", code))
        for text in (code, one.message):
            found |= {value for _, value in _STRING.findall(text) if len(value) >= 2}
            found |= set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", text))
            found |= set(re.findall(r"\b[A-Z]\w*(?:Error|Exception|Warning)\b", text)) - _NO_KIND
    return frozenset(found - _OWN - set(keyword.kwlist))


def shows(text: str, shown: Evidence) -> bool:
    """Whether a text names behaviour that the failing tests show."""
    return any(_stands(token, text) for token in symptoms(shown))


def _stands(token: str, text: str) -> bool:
    """Whether a name, a value or a number stands in a text as a whole."""
    before, after = (r"(?<![\w.])", r"(?!\w|\.\d)") if token[0].isdigit() else (r"(?<!\w)", r"(?!\w)")
    return re.search(f"{before}{re.escape(token)}{after}", text) is not None


def names_place(text: str, edit: Edit, wrong: Sequence[str], shown: Evidence) -> bool:
    """Whether a symptom tells more than the failing tests do: the file, the function, or a broken line."""
    name = edit.qualname.rpartition(".")[2]
    flat, known = _squeezed(text), _squeezed(shown.text)
    lines = [line for line in map(_squeezed, wrong) if len(line) >= SECRET and line not in known]
    file = PurePosixPath(edit.path).name
    places = [place for place in (edit.path, file) if place not in known]
    own = name not in _TOKEN.findall(known) and not hasattr(builtins, name)
    return any(part in flat for part in (*lines, *places)) or (own and _named(name, text))
