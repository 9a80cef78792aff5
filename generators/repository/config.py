"""What the repository room is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from factory.core.errors import UserError
from factory.core.task import Limits
from generators.repository.instruction import EXPLICITNESS
from generators.repository.operators import OPERATORS
from generators.repository.triage import TriageConfig


@dataclass(frozen=True, kw_only=True)
class RepositoryConfig:
    """Projects, operators and the form of the tasks made of them."""

    fleet: Path | None = None
    """A TOML file of projects and locks, or `wide`, or `default`, which come with the package; None: `default`."""
    projects: tuple[str, ...] = ()
    """Names of the projects to break; empty: all of the fleet's that are for tasks."""
    apart: tuple[str, ...] = ()
    """Projects that are never trained on: their tasks go to the holdout."""
    operators: tuple[str, ...] = tuple(OPERATORS)
    """Names of the operators to use."""
    explicitness: tuple[str, ...] = EXPLICITNESS
    """What instructions may give away, one drawn for each task: `symptom`, `function` or `line`."""
    excerpt_lines: int = 0
    """Most lines of the broken function that the instruction shows, numbered; 0: none."""
    one_line: bool = False
    """Only edits that one call of the `edit` tool restores."""
    triage: TriageConfig = field(default_factory=TriageConfig)
    """What a project must offer."""
    workers: int = 2
    """Sandboxes that run suites at the same time."""
    image: str = "python-3.11"
    """Name of the runtime."""
    limits: Limits = field(
        default_factory=lambda: Limits(memory_bytes=1 << 30, disk_bytes=128 << 20, open_files=512, command_ms=30_000)
    )
    """Limits of an episode."""

    def __post_init__(self) -> None:
        for name in self.operators:
            if name not in OPERATORS:
                raise UserError("repository.operators", name, f"one of {', '.join(OPERATORS)}")
        for name in self.explicitness:
            if name not in EXPLICITNESS:
                raise UserError("repository.explicitness", name, f"one of {', '.join(EXPLICITNESS)}")
        if not self.operators or not self.explicitness:
            raise UserError("repository", "()", "at least one operator and one explicitness")
        if self.workers < 1:
            raise UserError("repository.workers", self.workers, "at least 1")
        if self.excerpt_lines < 0:
            raise UserError("repository.excerpt_lines", self.excerpt_lines, "0 or more")
