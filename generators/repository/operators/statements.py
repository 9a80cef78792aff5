"""Statements as operators take them: left out, unwrapped, exchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import libcst as cst
import libcst.matchers as m

from generators.repository.operators.base import Neighbours, Place

DEFINITIONS = m.FunctionDef() | m.ClassDef()


def left_out(statement: cst.CSTNode, place: Place) -> Neighbours:
    """The change that leaves a statement out: `pass` stands in its place where it is alone in its block."""
    if len(place.block) > 1 or isinstance(place.parent, cst.Module):
        return Neighbours((statement,), ())
    return Neighbours((statement,), (cst.SimpleStatementLine([cst.Pass()], leading_lines=leading(statement)),))


def unwrapped(statement: cst.CSTNode, suites: Iterable[cst.BaseSuite | None]) -> Neighbours | None:
    """The change that puts the statements of its suites in a statement's place; None where one defines a function or class,
    whose text would keep its old depth."""
    inner = [line for suite in suites if suite is not None for line in lines_of(suite)]
    if not inner or any(m.findall(line, DEFINITIONS) for line in inner):
        return None
    inner[0] = led_by(inner[0], [*leading(statement), *leading(inner[0])])
    return Neighbours((statement,), tuple(inner))


def lines_of(suite: cst.BaseSuite) -> list[cst.CSTNode]:
    """A suite's statements as statements of a block."""
    if isinstance(suite, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)]
    return list(suite.body)


def exchanged(first: cst.CSTNode, second: cst.CSTNode) -> Neighbours:
    """The change of two neighbours' order. Comments go with their statement, blank lines above stay where they are."""
    blank, own = _split(leading(first))
    other_blank, other_own = _split(leading(second))
    return Neighbours((first, second), (led_by(second, [*blank, *other_own]), led_by(first, [*other_blank, *own])))


def filled(suite: cst.BaseSuite, statement: cst.BaseSmallStatement) -> cst.BaseSuite:
    """The suite with one simple statement in it."""
    if isinstance(suite, cst.SimpleStatementSuite):
        return suite.with_changes(body=[statement])
    return suite.with_changes(body=[cst.SimpleStatementLine([statement])])


def only_statement(suite: cst.BaseSuite) -> cst.CSTNode | None:
    """The simple statement that a suite consists of; None where it has more, or a compound one."""
    if isinstance(suite, cst.SimpleStatementSuite):
        return suite.body[0] if len(suite.body) == 1 else None
    line = suite.body[0] if len(suite.body) == 1 else None
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def leading(statement: cst.CSTNode) -> Sequence[cst.EmptyLine]:
    """Blank lines and comments above a statement."""
    found: Sequence[cst.EmptyLine] = getattr(statement, "leading_lines", ())
    return found


def led_by(statement: cst.CSTNode, lines: Sequence[cst.EmptyLine]) -> cst.CSTNode:
    """The statement under other blank lines and comments."""
    changes: dict[str, Any] = {"leading_lines": lines}
    return statement.with_changes(**changes)


def _split(lines: Sequence[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """Blank lines at the beginning, and the rest."""
    count = next((index for index, line in enumerate(lines) if line.comment is not None), len(lines))
    return list(lines[:count]), list(lines[count:])
