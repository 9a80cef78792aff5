"""The step log: one JSON object a line, one line a step, also after a kill."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any


class MetricsLog:
    """Appends to `path`; a resumed run first drops the lines of steps that it will do again."""

    def __init__(self, path: Path, *, after: int) -> None:
        """Keep the lines of steps up to `after`; a half-written last line is dropped too."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_metrics(path) if line["step"] <= after]
        scratch = path.with_suffix(".writing")
        scratch.write_text("".join(_line(value) for value in kept))
        scratch.replace(path)

    def append(self, value: dict[str, Any]) -> None:
        """Write one step's line."""
        with self.path.open("a") as file:
            file.write(_line(value))


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All whole lines; empty when there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _line(value: dict[str, Any]) -> str:
    """JSON has no infinity: a number that is not finite is written as null."""
    return json.dumps(_finite(value), sort_keys=True, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
