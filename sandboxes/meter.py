"""What one sandbox used, added up as it goes."""

from __future__ import annotations

from factory.core.outcome import ResourceUse
from sandboxes.contract import CommandResult, ProcessResult


class Meter:
    """Wall time and output of what ran, and what a back end sees of the rest when the sandbox stops."""

    def __init__(self) -> None:
        self._wall_s = 0.0
        self._output_bytes = 0
        self._beside_s = 0.0
        self._seen: dict[str, float | int | None] = {}

    def command(self, result: CommandResult) -> CommandResult:
        """Count a command of the session."""
        self._wall_s += result.wall_s
        self._output_bytes += len(result.output) + result.omitted_bytes
        return result

    def process(self, result: ProcessResult) -> ProcessResult:
        """Count a process beside the session, which is over with all that it started."""
        self._wall_s += result.wall_s
        self._beside_s += result.cpu_s
        self._output_bytes += len(result.stdout)
        return result

    def see(self, *, cpu_s: float | None, beside: bool, memory: int | None, processes: int | None, disk: int | None) -> None:
        """What the back end found; `beside` says whether the processes beside the session are in its processor time."""
        if cpu_s is not None and not beside:
            cpu_s += self._beside_s
        self._seen = {"cpu_s": cpu_s, "memory_bytes": memory, "processes": processes, "disk_bytes": disk}

    def use(self) -> ResourceUse:
        """All of it."""
        seen = self._seen or {"cpu_s": None, "memory_bytes": None, "processes": None, "disk_bytes": None}
        return ResourceUse(wall_s=self._wall_s, output_bytes=self._output_bytes, **seen)  # type: ignore[arg-type]
