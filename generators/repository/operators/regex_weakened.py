"""A regular expression that lets through, or cuts off, other text than before."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place, text_of

TAKERS = {f"re.{name}" for name in ("compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split")}
TOKEN = re.compile(
    r"(?P<escape>\\(?:[ux][0-9A-Fa-f]+|\d+|.))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<open>\(\?(?:P<\w+>|P=\w+|<?[=!]|[:>]|[aiLmsux-]+:?))"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<count>(?:\{\d*,?\d*\}|[*+?])[?+]?)"
    r"|(?P<other>.)",
    re.DOTALL,
)
ANCHORS = (r"\b", r"\A", r"\Z", "^", "$")
CLASSES = {r"\d": r"\w", r"\s": "[ ]", r"\w": r"\S"}
COUNTS = {"+": "*", "*": "+", "*?": "*", "+?": "+"}


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.Call):
        attribute = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        if attribute == "compile" and len(node.args) == 2 and text_of(node.func) == "re.compile":
            yield node.with_changes(args=[node.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)])  # without flags
        return
    assert isinstance(node, cst.SimpleString)
    if not _is_pattern(node, place) or ("r" not in node.prefix.lower() and "\\" in node.value):
        return
    start = len(node.prefix) + len(node.quote)
    for pattern in weaker(node.value[start : -len(node.quote)]):
        yield node.with_changes(value=node.value[:start] + pattern + node.quote)


def weaker(pattern: str) -> Iterator[str]:
    """The pattern with one part changed, as valid as it was. What a verbose pattern says in comments is left alone."""
    tokens = list(TOKEN.finditer(pattern))
    for index, found in enumerate(tokens):
        kind, text = found.lastgroup, found.group()
        if kind == "comment" and "\n" not in pattern:
            return  # a plain `#`: what follows is not told apart
        counted = index + 1 < len(tokens) and tokens[index + 1].lastgroup == "count"
        new = None
        if text in ANCHORS and not counted:
            new = ""
        elif kind == "escape":
            new = CLASSES.get(text)
        elif kind == "set" and text.startswith("[^") and len(text) > 3:
            new = "[" + text[2:]
        elif kind == "count":
            new = COUNTS.get(text)
        if new is not None:
            yield pattern[: found.start()] + new + pattern[found.end() :]


def _is_pattern(node: cst.SimpleString, place: Place) -> bool:
    """Whether the string is, or is a part of, the first argument of a function of `re`."""
    child: cst.CSTNode = node
    for ancestor in reversed(place.ancestors):
        if isinstance(ancestor, cst.Call):
            return bool(ancestor.args) and ancestor.args[0] is child and text_of(ancestor.func) in TAKERS
        if not isinstance(ancestor, (cst.ConcatenatedString, cst.Arg)):
            return False
        child = ancestor
    return False


OPERATOR = Operator("regex_weakened", (cst.SimpleString, cst.Call), changes, "a regular expression")
