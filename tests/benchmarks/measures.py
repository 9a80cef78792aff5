"""Times, percentiles and memory, as the benchmarks report them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def percentile(values: list[float], share: float) -> float:
    """The nearest-rank percentile: the smallest value that at least `share` of all do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class Times:
    """Durations by contestant and what it did, seconds."""

    def __init__(self) -> None:
        self.taken: dict[tuple[str, str], list[float]] = {}

    def measure(self, who: str, what: str, do: Callable[[], T]) -> T:
        """Do it and note how long it took."""
        started = time.perf_counter()
        result = do()
        self.add(who, what, time.perf_counter() - started)
        return result

    def add(self, who: str, what: str, seconds: float) -> None:
        """Note a duration."""
        self.taken.setdefault((who, what), []).append(seconds)

    def summary(self, who: str, what: str) -> dict[str, float]:
        """Number of measurements, p50, p95 and p99 in milliseconds."""
        values = self.taken[who, what]
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
        return {"n": len(values)} | {name: round(1000 * percentile(values, share), 3) for name, share in shares.items()}


def available_bytes() -> int:
    """Memory that the machine could still give, bytes: falls by all that sandboxes take, the kernel's share included."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo has no MemAvailable")


def load() -> float:
    """Mean number of running processes in the last minute: what else the machine does."""
    return float(Path("/proc/loadavg").read_text().split()[0])


def table(header: list[str], rows: list[list[str]]) -> str:
    """Plain text: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
        for row in [header, ["-" * width for width in widths], *rows]
    ]
    return "\n".join(lines)
