"""Budgets at which a run ends cleanly with what it has."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class BudgetConfig:
    """Most that one run may use; None is no bound."""

    seconds: float | None = None
    """Wall time of the run, seconds."""
    disk_bytes: int | None = None
    """Fall of the free space on the data folder's disk, bytes; what others write there counts too."""
    tokens: int | None = None
    """Tokens sampled from the policy."""


@dataclass
class Budget:
    """What is left. `spent()` is asked before each shard of work, so a run ends between shards."""

    config: BudgetConfig
    folder: Path
    started: float = field(default_factory=time.monotonic)
    tokens: int = 0

    def __post_init__(self) -> None:
        self._free = shutil.disk_usage(self.folder).free

    def sampled(self, tokens: int) -> None:
        """Count tokens that the policy produced."""
        self.tokens += tokens

    def spent(self) -> str:
        """Which bound is reached, in words; empty while there is something left."""
        seconds = time.monotonic() - self.started
        if self.config.seconds is not None and seconds >= self.config.seconds:
            return f"time: {seconds:.0f} s of {self.config.seconds:.0f} s"
        written = self._free - shutil.disk_usage(self.folder).free
        if self.config.disk_bytes is not None and written >= self.config.disk_bytes:
            return f"disk: {written} bytes of {self.config.disk_bytes}"
        if self.config.tokens is not None and self.tokens >= self.config.tokens:
            return f"tokens: {self.tokens} of {self.config.tokens}"
        return ""
