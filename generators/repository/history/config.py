"""What makes a change of a project's history a task."""

from __future__ import annotations

from dataclasses import dataclass

from factory.core.errors import UserError


@dataclass(frozen=True, kw_only=True)
class HistoryConfig:
    """How many tasks come from history, and which changes they may be."""

    percent: int = 0
    """Numbers of a series that are changes of the fleet's `[[history]]` entries, percent; the others are edits, the same as
    without."""
    commits: int = 200
    """Newest commits of a git entry that are looked at, merges left out."""
    max_changed_files: int = 40
    """Source files of a whole commit or release; one with more is left alone before anything is run."""
    max_changed_lines: int = 4_000
    """Lines of source added and removed by a whole commit or release."""
    max_pieces: int = 32
    """Differences of a change that are taken back one at a time to see which belong together, each a run of the suite; a
    change with more is looked at file by file, and left alone when its files are more."""
    max_files: int = 5
    """Source files of one task."""
    max_lines: int = 200
    """Lines of source that one task's solution adds and removes."""
    max_characters: int = 10_000
    """Characters of one task's solution as a unified diff."""
    uncollected: bool = True
    """Whether tests count as failing that the code before the change can not even import."""
    written_tests: int = 0
    """Test files that are asked of the endpoint, one after another, for a change that no test tells; 0: none."""
    repeats: int = 3
    """Runs on either side, in shuffled order, that a written test must tell apart every time."""

    def __post_init__(self) -> None:
        if not 0 <= self.percent <= 100:
            raise UserError("repository.history.percent", self.percent, "0 to 100")
        if self.written_tests < 0:
            raise UserError("repository.history.written_tests", self.written_tests, "0 or more")
        for name in ("commits", "max_changed_files", "max_changed_lines", "max_pieces", "max_files", "max_lines"):
            if getattr(self, name) < 1:
                raise UserError(f"repository.history.{name}", getattr(self, name), "at least 1")
        for name in ("max_characters", "repeats"):
            if getattr(self, name) < 1:
                raise UserError(f"repository.history.{name}", getattr(self, name), "at least 1")

    def takes(self, number: int) -> bool:
        """Whether this number of a series is a change."""
        return (number + 1) * self.percent // 100 > number * self.percent // 100

    def index(self, number: int) -> int:
        """Which of the changes, from 0, such a number is."""
        return number * self.percent // 100
