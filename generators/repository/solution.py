"""The reference solution of an edit: tool calls that put the original lines back."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from factory.core.action import Action
from factory.core.demonstration import Demonstration
from factory.core.digest import canonical_text

LONGEST = 60_000
"""Most bytes of an argument: a tool refuses longer ones."""
PIECE = 3_500
"""Most characters that one call writes: quoted and in octal they stay below what a tool takes."""


def restoring(path: str, broken: str, original: str) -> Demonstration:
    """Calls of `edit` (and `sed` where lines are too many) that turn `broken` into `original`, then `submit`.

    From the last difference to the first, so that line numbers hold. Both texts end in the same way.
    """
    before, after = _lines(broken, original)
    actions: list[Action] = []
    for tag, start, end, first, last in reversed(difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()):
        if tag == "equal":
            continue
        lines = after[first:last]
        if tag == "replace" and end - start == len(lines):
            actions += [_edit(path, start + offset, [line]) for offset, line in reversed(list(enumerate(lines)))]
            continue
        if tag == "insert" and start == 0:  # above the first line, which stays
            actions.append(_edit(path, 0, [*lines, before[0]]))
            continue
        if tag == "insert":  # below the line before, which stays
            actions.append(_edit(path, start - 1, [before[start - 1], *lines]))
            continue
        surplus = start if tag == "delete" else start + 1
        if end > surplus:
            actions.append(Action("bash", {"command": f"sed -i '{surplus + 1},{end}d' {_quoted(path)}"}))
        if tag == "replace":
            actions.append(_edit(path, start, lines))
    return Demonstration((*actions, Action("submit")))


def changed_lines(broken: str, original: str) -> tuple[list[str], list[str]]:
    """Lines of `broken` that the solution replaces, and the lines it puts there."""
    before, after = _lines(broken, original)
    wrong: list[str] = []
    right: list[str] = []
    for tag, start, end, first, last in difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        if tag != "equal":
            wrong += before[start:end]
            right += after[first:last]
    return wrong, right


def _lines(broken: str, original: str) -> tuple[list[str], list[str]]:
    """The lines of both; what follows a last newline is no line."""
    ended = broken.endswith("\n")
    assert ended == original.endswith("\n")
    before, after = broken.split("\n"), original.split("\n")
    return (before[:-1], after[:-1]) if ended else (before, after)


def _edit(path: str, index: int, lines: list[str]) -> Action:
    """Replace the line at `index` (from 0). The tool keeps the line's own end and drops one newline at the text's end."""
    text = "\n".join(lines).removesuffix("\r")
    return Action("edit", {"path": path, "line": str(index + 1), "text": f"{text}\n" if text.endswith("\n") else text})


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


def restoring_files(broken: Mapping[str, str | None], original: Mapping[str, str | None]) -> Demonstration:
    """Calls that turn each file of `broken` into that of `original`, None where there is none, then `submit`.

    Lines are edited where that says exactly what is wanted. Else the file is written anew with `printf`: an empty one, one
    whose last newline comes or goes, and one whose text the canonical form of a demonstration would change.
    """
    actions: list[Action] = []
    for path in sorted({*broken, *original}):
        before, after = broken.get(path), original.get(path)
        if before != after:
            actions += _restored(path, before, after)
    return Demonstration((*actions, Action("submit")))


def _restored(path: str, before: str | None, after: str | None) -> list[Action]:
    if after is None:
        return [_bash(f"rm {_quoted(path)}")]
    if before and before.endswith("\n") and after.endswith("\n") and "\r" not in before + after:
        *edits, _ = restoring(path, before, after).actions
        values = [value for action in edits for value in action.arguments.values()]
        if all(canonical_text(value) == value and len(value.encode()) <= LONGEST for value in values):
            return edits
    folder = path.rpartition("/")[0]
    made = f"mkdir -p {_quoted(folder)} && " if before is None and folder else ""
    pieces = [after[start : start + PIECE] for start in range(0, len(after), PIECE)] or [""]
    first = f"{made}printf -- {_format(pieces[0])} > {_quoted(path)}"
    return [_bash(command) for command in (first, *(f"printf -- {_format(piece)} >> {_quoted(path)}" for piece in pieces[1:]))]


def _bash(command: str) -> Action:
    return Action("bash", {"command": command})


def _format(text: str) -> str:
    """`text` as one word that `printf` prints; in octal what a canonical text can not hold."""
    plain = text.replace("\\", "\\\\").replace("%", "%%").replace("\r", "\\r")
    if canonical_text(plain) != plain:
        plain = "".join(
            letter if letter.isascii() else "".join(f"\\{byte:03o}" for byte in letter.encode()) for letter in plain
        )
    return _quoted(plain)
