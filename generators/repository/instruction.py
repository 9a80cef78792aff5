"""Instructions: a symptom as a user would report it, and as much of the place as the explicitness gives away."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from factory.core.syntax import parse_python
from generators.repository.edits import MODULE, Edit
from generators.repository.runs import Failure

EXPLICITNESS = ("symptom", "function", "line")
"""What an instruction gives away: how it shows; also function and file; also the broken line itself."""
STATEMENT = 400
"""Longest quoted statement, characters."""
MESSAGE = 240
"""Longest quoted message, characters."""
SECRET = 4
"""Fixed lines with fewer characters are no secret."""


@dataclass(frozen=True)
class Evidence:
    """One failure that shows the bug: what was run, and how it failed."""

    statement: str
    type: str
    message: str


def evidence(failures: Sequence[Failure], tests: dict[str, str]) -> Evidence | None:
    """The shortest readable failure; `tests` are the test files by path. None when no failure passed through a test's file."""
    found = []
    for failure in failures:
        statement = statement_at(tests.get(failure.file, ""), failure.line)
        if statement and len(statement) <= STATEMENT:
            found.append(Evidence(statement, failure.type, _readable(failure.message)))
    return min(found, key=lambda one: (not one.message, len(one.statement) + len(one.message), one.statement), default=None)


def statement_at(text: str, line: int) -> str:
    """The smallest statement of a file that covers a line, dedented; a compound one as far as that line; empty when none."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return ""
    best: ast.stmt | None = None
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.stmt)):
        if node.lineno <= line <= (node.end_lineno or 0) and (best is None or node.lineno >= best.lineno):
            best = node
    if best is None or isinstance(best, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return ""
    last = (best.end_lineno or line) if not hasattr(best, "body") else line
    lines = text.split("\n")[best.lineno - 1 : last]
    return textwrap.dedent("\n".join(lines)).strip()


def _readable(message: str) -> str:
    """The head of a message."""
    lines = [line.rstrip() for line in message.strip().split("\n") if line.strip()][:4]
    short = "\n".join(lines)
    return short if len(short) <= MESSAGE else short[:MESSAGE] + "..."


def instruction(
    release: str, edit: Edit, broken: str, *, explicitness: str, failing: int, shown: Evidence | None, excerpt_lines: int
) -> str:
    """The text of a task. `broken` is the edited file, `failing` the number of failing checks; without `shown` the symptom is
    that the function misbehaves (demonstrations, for which nothing is run)."""
    parts = [f"There is a bug in {release.replace('==', ' ')}."]
    if shown is None:
        parts.append(f"{edit.qualname if edit.qualname != MODULE else edit.path} does not do what it should.")
    else:
        error = f"{shown.type}: {shown.message}" if shown.message else shown.type
        more = (
            ""
            if failing == 1
            else "\nOne other check fails too."
            if failing == 2
            else f"\n{failing - 1} other checks fail too."
        )
        parts.append(f"This fails:\n{textwrap.indent(shown.statement, '    ')}\nwith\n{textwrap.indent(error, '    ')}{more}")
    lines = broken.split("\n")
    if explicitness != "symptom":
        parts.append(f"The mistake is {edit.where}.")
    if explicitness == "line":
        parts.append(f"Line {edit.line} is wrong:\n{lines[edit.line - 1]}")
    if excerpt_lines:
        first, last = window(edit, excerpt_lines)
        numbered = "\n".join(f"{number}|{lines[number - 1]}" for number in range(first, min(last, len(lines)) + 1))
        parts.append(f"{edit.path}:\n{numbered}")
    parts.append("Correct the source and submit.")
    return "\n".join(parts)


def window(edit: Edit, size: int) -> tuple[int, int]:
    """First and last line of the part of the function that is shown: all of it, or `size` lines around the edit."""
    first, last = edit.function
    if last - first + 1 > size:
        first = max(first, min(edit.line - size // 2, last - size + 1))
        last = first + size - 1
    return first, last


def leaks(text: str, fixed: Sequence[str], broken: str) -> bool:
    """Whether an instruction holds a fixed line that is not also somewhere in the broken file."""
    known = {" ".join(line.split()) for line in broken.split("\n")}
    flat = " ".join(text.split())
    wanted = [" ".join(line.split()) for line in fixed]
    return any(len(line) >= SECRET and line not in known and line in flat for line in wanted)
