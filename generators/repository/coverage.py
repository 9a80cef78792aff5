"""Who runs what: the tests that execute each line of the sources, and what runs before any test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What traced runs of the clean suite saw, in any of their orders."""

    tests: tuple[str, ...] = ()
    """Ids, in the order of the bits of a mask."""
    lines: dict[str, dict[str, str]] = field(default_factory=dict)
    """By path and line: a hexadecimal mask of the tests that execute the line."""
    imported: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    """By path, what ran outside tests: `lines`, `called` (functions, `line:qualname`) and `read` (functions whose code
    object was looked at). A path that is not there was not imported before the first test."""
    always: dict[str, str] = field(default_factory=dict)
    """Tests whose lines tell too little, and why: `subprocess`, `threads`, `trace function` or `fails when traced`."""

    @cached_property
    def _masks(self) -> dict[str, list[tuple[int, int]]]:
        return {path: [(int(line), int(mask, 16)) for line, mask in lines.items()] for path, lines in self.lines.items()}

    def covering(self, path: str, spans: Iterable[tuple[int, int]]) -> set[str]:
        """Tests that execute a line of one of the spans (first and last line)."""
        spans, mask = list(spans), 0
        for line, tests in self._masks.get(path, ()):
            if any(first <= line <= last for first, last in spans):
                mask |= tests
        return {name for number, name in enumerate(self.tests) if mask >> number & 1}

    def imports(self, path: str, first: int, last: int) -> bool:
        """Whether one of these lines ran outside tests."""
        return any(first <= line <= last for line in self.imported.get(path, {}).get("lines", ()))


def merged(tests: Sequence[str], traces: Sequence[dict[str, Any]], failed: Iterable[str]) -> Coverage:
    """One coverage of several traced runs, as `inside/suite_tracing.py` tells each.

    `failed` are tests that pass, but not when they are traced.
    """
    bits = {name: number for number, name in enumerate(tests)}
    lines: dict[str, dict[int, int]] = {}
    imported: dict[str, dict[str, set[Any]]] = {}
    always = dict.fromkeys(failed, "fails when traced")
    for trace in traces:
        where = [bits.get(name) for name in trace["ids"]]
        for path, masks in trace["lines"].items():
            known = lines.setdefault(path, {})
            for line, mask in masks.items():
                known[int(line)] = known.get(int(line), 0) | _moved(int(mask, 16), where)
        for path, told in trace["imported"].items():
            sets = imported.setdefault(path, {})
            for name, values in told.items():
                sets.setdefault(name, set()).update(values)
        always |= {name: why for name, why in trace["always"].items() if name in bits}
    return Coverage(
        tests=tuple(tests),
        lines={path: {str(line): f"{mask:x}" for line, mask in sorted(masks.items())} for path, masks in sorted(lines.items())},
        imported={path: {name: sorted(values) for name, values in sets.items()} for path, sets in sorted(imported.items())},
        always=dict(sorted(always.items())),
    )


def _moved(mask: int, where: Sequence[int | None]) -> int:
    """A mask with each bit at its new place; those without one are dropped."""
    moved = 0
    for number, place in enumerate(where):
        if place is not None and mask >> number & 1:
            moved |= 1 << place
    return moved
