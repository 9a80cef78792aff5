"""Text put together in another format: a conversion or a specification left out, zeros or places lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from generators.repository.operators.base import Operator, Place

PERCENT = re.compile(r"%(?P<key>\(\w+\))?(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<places>\.\d+)?(?P<kind>[diouxXeEfFgGcrs])")
FIELD = re.compile(r"(?<!\{)\{(?P<name>[\w.]*)(?P<conversion>![rsa])?(?P<spec>:[^{}]+)?\}(?!\})")


def changes(node: cst.CSTNode, place: Place) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.FormattedStringExpression):
        if node.conversion is not None:
            yield node.with_changes(conversion=None)
        if node.format_spec is not None:
            yield node.with_changes(format_spec=None)
        return
    assert isinstance(node, cst.SimpleString)
    parent = place.parent
    if isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.Modulo) and parent.left is node:
        texts = _percent(node.value)
    elif isinstance(parent, cst.Attribute) and parent.attr.value == "format":
        texts = _fields(node.value)
    else:
        return
    for text in texts:
        yield node.with_changes(value=text)


def _percent(text: str) -> Iterator[str]:
    for found in PERCENT.finditer(text.replace("%%", "\0\0")):
        key, flags, width, places, kind = (part or "" for part in found.groups())
        if kind in "rs":
            yield _put(text, found, f"%{key}{flags}{width}{places}{'s' if kind == 'r' else 'r'}")
        if "0" in flags:
            yield _put(text, found, f"%{key}{flags.replace('0', '')}{width}{places}{kind}")
        if places and int(places[1:]) > 0:
            yield _put(text, found, f"%{key}{flags}{width}.{int(places[1:]) - 1}{kind}")


def _fields(text: str) -> Iterator[str]:
    for found in FIELD.finditer(text):
        name, conversion, spec = (part or "" for part in found.groups())
        if conversion:
            yield _put(text, found, f"{{{name}{spec}}}")
        if spec:
            yield _put(text, found, f"{{{name}{conversion}}}")


def _put(text: str, found: re.Match[str], new: str) -> str:
    return text[: found.start()] + new + text[found.end() :]


OPERATOR = Operator(
    "format_changed", (cst.SimpleString, cst.FormattedStringExpression), changes, "the format of a value in a text"
)
