"""Logical lines of Python: what a statement's line says, apart from how it is laid out."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

from factory.core.syntax import parse_python

HEADER = "if 1:\n"
"""Under this an indented piece of code stands by itself."""
_SILENT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_FSTRING = tuple(getattr(tokenize, name, -1) for name in ("FSTRING_START", "FSTRING_END"))
"""Python 3.12 takes f-strings apart; before, they are one token."""


@dataclass(frozen=True)
class Logical:
    """One logical line with the comments and blank lines above it."""

    depth: int
    """Blocks around it."""
    key: tuple[str, ...]
    """Its tokens; strings by their value, multi-line ones by their stripped lines, comments left out."""
    lead: tuple[str, ...]
    """Physical lines above it: comments and blank ones."""
    code: tuple[str, ...]
    """Its own physical lines, indentation included."""
    comments: tuple[tuple[int, int, str], ...] = ()
    """Comments within `code`: index of the line, column, text."""
    inner: frozenset[int] = field(default_factory=frozenset)
    """Indices of lines in `code` that begin inside a string: their indentation is content."""

    @property
    def indent(self) -> str:
        return self.code[0][: len(self.code[0]) - len(self.code[0].lstrip())]

    @property
    def said(self) -> list[str]:
        """The texts of all its comments, those above it included."""
        return [line.strip() for line in self.lead if line.strip()] + [text for _, _, text in self.comments]


def logical_lines(segment: str) -> list[Logical]:
    """The logical lines of a piece of code with LF line ends, indented or not.

    Raises SyntaxError (IndentationError among it) or tokenize.TokenError when it is no Python.
    """
    header = HEADER if segment[:1] in (" ", "\t") else ""
    rows = (header + segment).split("\n")
    found, tokens, depth, done = [], [], 0, 0
    for token in tokenize.generate_tokens(io.StringIO(header + segment).readline):
        if token.type == tokenize.INDENT:
            depth += 1
        elif token.type == tokenize.DEDENT:
            depth -= 1
        elif token.type not in _SILENT or (tokens and token.type in (tokenize.COMMENT, tokenize.NEWLINE)):
            tokens.append(token)
            if token.type == tokenize.NEWLINE:
                found.append(_logical(tokens, rows, depth, done))
                tokens, done = [], token.end[0]
    return found[1:] if header else found


def _logical(tokens: list[tokenize.TokenInfo], rows: list[str], depth: int, done: int) -> Logical:
    first, last = tokens[0].start[0], tokens[-1].start[0]
    return Logical(
        depth=depth,
        key=tuple(_key(token) for token in tokens if token.type not in _SILENT),
        lead=tuple(rows[done : first - 1]),
        code=tuple(rows[first - 1 : last]),
        comments=tuple(
            (token.start[0] - first, token.start[1], token.string) for token in tokens if token.type == tokenize.COMMENT
        ),
        inner=frozenset(row - first for start, end in _strings(tokens) for row in range(start + 1, end + 1)),
    )


def _strings(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, int]]:
    """First and last row of each string; f-strings that are taken apart may hold others."""
    open_rows = []
    for token in tokens:
        if token.type == tokenize.STRING:
            yield token.start[0], token.end[0]
        elif token.type == _FSTRING[0]:
            open_rows.append(token.start[0])
        elif token.type == _FSTRING[1]:
            yield open_rows.pop(), token.end[0]


def _key(token: tokenize.TokenInfo) -> str:
    if token.type != tokenize.STRING:
        return token.string
    try:
        (statement,) = parse_python(token.string).body
        assert isinstance(statement, ast.Expr)
        value = ast.literal_eval(statement.value)
    except (SyntaxError, ValueError):  # an f-string
        return _stripped(token.string)
    return repr(_stripped(value) if "\n" in token.string and isinstance(value, str) else value)


def _stripped(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n"))
