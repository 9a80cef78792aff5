"""A failing assertion as a session in the interpreter: what was called, what it gave, what was expected."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from factory.core.syntax import parse_python
from generators.repository.evidence import Evidence

_EQUAL = {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual", "assertIs"}
_TRUTH = {"assertTrue": "True", "assertFalse": "False"}
_CHECKED = (ast.Eq, ast.Is)
_LONGEST = 160
"""Longest value that is shown, characters."""


@dataclass(frozen=True)
class Reproduction:
    """A call, what it gave, and what the test expected of it."""

    call: str
    gave: str
    """The value; for a failure that is an exception, the exception as Python prints it."""
    expected: str
    """The value; empty when the call was expected to end in no error."""
    raised: bool = False


def reproduction(shown: Evidence) -> Reproduction | None:
    """The session that a failure amounts to; None where its statement or its message are of no form that says so."""
    try:
        (statement,) = parse_python(shown.statement).body
    except (SyntaxError, ValueError):
        return None
    if shown.type == "Failed" and isinstance(statement, ast.With) and "DID NOT RAISE" in shown.message:
        return _not_raised(shown, statement)
    compared = _compared(shown.statement, statement)
    if shown.type == "AssertionError":
        return _told_apart(shown, *compared) if compared is not None else None
    if compared is not None:
        call, expected = compared
        return Reproduction(call, shown.error, expected, raised=True)
    if isinstance(statement, (ast.Expr, ast.Assign)) and "\n" not in shown.statement:
        return Reproduction(shown.statement, shown.error, "", raised=True)
    return None


def _compared(text: str, statement: ast.stmt) -> tuple[str, str] | None:
    """The call that an assertion is about, and the source of what it is compared with."""
    if isinstance(statement, ast.Assert):
        test = statement.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], _CHECKED):
            return _sides(text, test.left, test.comparators[0])
        negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        inner = test.operand if isinstance(test, ast.UnaryOp) and negated else test
        return (_source(text, inner), str(not negated)) if isinstance(inner, ast.Call) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or _source(text, call.func.value) != "self":
        return None
    if call.func.attr in _EQUAL and len(call.args) >= 2:
        return _sides(text, call.args[0], call.args[1])
    if call.func.attr in _TRUTH and isinstance(call.args[0] if call.args else None, ast.Call):
        return _source(text, call.args[0]), _TRUTH[call.func.attr]
    return None


def _sides(text: str, left: ast.expr, right: ast.expr) -> tuple[str, str] | None:
    """The side that is worked out first, then the other; None when both or neither are literals."""
    plain = _is_plain(left), _is_plain(right)
    if plain == (False, True):
        return _source(text, left), _source(text, right)
    return (_source(text, right), _source(text, left)) if plain == (True, False) else None


def _is_plain(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _source(text: str, node: ast.AST) -> str:
    return ast.get_source_segment(text, node) or ast.unparse(node)


def _told_apart(shown: Evidence, call: str, expected: str) -> Reproduction | None:
    """The value of the call, read from the message of a failed assertion."""
    if expected in ("True", "False") and "==" not in shown.statement and " is " not in shown.statement:
        return Reproduction(call, str(expected != "True"), expected) if _mentions_truth(shown.message) else None
    for line in shown.message.split("\n"):
        values = _values(line.strip())
        if values is None:
            continue
        wanted = _value(expected)
        for gave, other in (values, values[::-1]):
            if _value(other) == wanted and gave != other and len(gave) <= _LONGEST:
                return Reproduction(call, gave, expected)
    return None


def _mentions_truth(message: str) -> bool:
    first = message.split("\n")[0].removeprefix("assert ").removeprefix("not ")
    return first.startswith(("True", "False"))


def _values(line: str) -> tuple[str, str] | None:
    """Both values of `assert A == B`, `assert A is B` or `A != B`."""
    text = line.removeprefix("assert ")
    try:
        (statement,) = parse_python(text).body
    except (SyntaxError, ValueError):
        return None
    test = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (*_CHECKED, ast.NotEq)):
        return None
    return _source(text, test.left), _source(text, test.comparators[0])


def _value(source: str) -> str:
    """A literal in its canonical form; other source as it is."""
    try:
        return repr(ast.literal_eval(parse_python(source.strip()).body[0].value))  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, TypeError, IndexError, AttributeError):
        return source


def _not_raised(shown: Evidence, statement: ast.With) -> Reproduction | None:
    item = statement.items[0].context_expr
    if not isinstance(item, ast.Call) or not item.args or len(statement.body) != 1:
        return None
    if isinstance(statement.body[0], (ast.With, ast.For, ast.If)):
        return None
    call = _source(shown.statement, statement.body[0])
    return Reproduction(call, "", _source(shown.statement, item.args[0]))
