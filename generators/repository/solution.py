"""The reference solution of an edit: tool calls that put the original lines back."""

from __future__ import annotations

import difflib

from factory.core.action import Action
from factory.core.demonstration import Demonstration


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
        if tag == "insert":  # below the line before, which stays
            assert start > 0, "operators change function bodies, never a file's first line"
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
