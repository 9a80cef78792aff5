"""Instructions: a symptom as a user would report it, and as much of the place as the explicitness gives away."""

from __future__ import annotations

import random
import textwrap

from factory.core.streams import stream
from generators.repository import wording
from generators.repository.evidence import Evidence
from generators.repository.reproduction import reproduction
from generators.repository.sites import Edit

EXPLICITNESS = ("symptom", "function", "line")
"""What an instruction gives away: how it shows; also function and file; also the broken line itself."""


def instruction(
    release: str,
    edit: Edit,
    broken: str,
    *,
    explicitness: str,
    failing: int,
    shown: Evidence | None,
    excerpt_lines: int,
    seed: int = 0,
    symptom: str | None = None,
) -> str:
    """The text of a task. `broken` is the edited file, `failing` the number of failing checks; without `shown` the symptom is
    that the function misbehaves (demonstrations, for which nothing is run). `symptom` stands in for the part that
    `reported` writes; `seed` chooses among wordings."""
    rng = stream(seed, "repository wording", release, edit.operator, edit.site, edit.new)
    parts = [reported(release, edit, failing=failing, shown=shown, seed=seed) if symptom is None else symptom]
    lines = broken.split("\n")
    if explicitness != "symptom":
        parts.append(rng.choice(wording.PLACE).format(where=f"in {edit.qualname} in {edit.path}"))
    if explicitness == "line":
        parts.append(rng.choice(wording.LINE).format(line=edit.line, text=lines[edit.line - 1]))
    if excerpt_lines:
        first, last = window(edit, excerpt_lines)
        numbered = "\n".join(f"{number}|{lines[number - 1]}" for number in range(first, min(last, len(lines)) + 1))
        parts.append(f"{edit.path}:\n{numbered}")
    parts.append(rng.choice(wording.CLOSING))
    return "\n".join(parts)


def reported(release: str, edit: Edit, *, failing: int, shown: Evidence | None, seed: int) -> str:
    """The symptom by template, in one of several wordings."""
    rng = stream(seed, "repository symptom", release, edit.operator, edit.site, edit.new)
    parts = [rng.choice(wording.OPENING).format(release=release.replace("==", " "))]
    if shown is None:
        return "\n".join([*parts, rng.choice(wording.MISBEHAVES).format(function=edit.qualname)])
    parts.append(_session(shown, rng) or _failure(shown, rng))
    if shown.others:
        parts += [rng.choice(wording.ALSO), *(_indented(_in_one_line(other)) for other in shown.others)]
    more = failing - 1 - len(shown.others)
    if more > 0:
        checks = "check fails" if more == 1 else "checks fail"
        parts.append(rng.choice(wording.MORE).format(count="one" if more == 1 else more, checks=checks).capitalize())
    return "\n".join(parts)


def _session(shown: Evidence, rng: random.Random) -> str:
    """The failure as a session in the interpreter; empty where it can not be repeated there."""
    found = reproduction(shown) if shown.alone else None
    if found is None:
        return ""
    setup = [f">>> {line}" if line[:1].strip() else f"... {line}" for line in shown.setup.split("\n") if line]
    call = [f"{'...' if number else '>>>'} {line}" for number, line in enumerate(found.call.split("\n"))]
    session = _indented("\n".join([*setup, *call, *([found.gave] if found.gave else [])]))
    said = rng.choice(wording.SESSION).format(session=session)
    if not found.gave:
        return f"{said}\n{rng.choice(wording.EXPECTED_ERROR).format(expected=found.expected)}"
    if not found.expected:
        return f"{said}\n{rng.choice(wording.EXPECTED_NO_ERROR)}"
    return f"{said}\n{rng.choice(wording.EXPECTED).format(expected=found.expected)}"


def _failure(shown: Evidence, rng: random.Random) -> str:
    return rng.choice(wording.FAILS).format(statement=_indented(shown.statement), error=_indented(shown.error))


def _in_one_line(other: Evidence) -> str:
    return f"{other.statement}  # {other.error}"


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def window(edit: Edit, size: int) -> tuple[int, int]:
    """First and last line of the part of the function that is shown: all of it, or `size` lines around the edit."""
    first, last = edit.function
    if last - first + 1 > size:
        first = max(first, min(edit.line - size // 2, last - size + 1))
        last = first + size - 1
    return first, last
