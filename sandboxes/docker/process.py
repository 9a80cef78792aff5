"""What one process beside the session wrote, its sign of life and its times among it."""

from __future__ import annotations

import re

from factory.core.errors import SandboxLost
from sandboxes.contract import ProcessResult
from sandboxes.docker.stream import ERROR
from sandboxes.grace import Look
from sandboxes.shell import HeadTail

STDERR_BYTES = 4096
"""Tail of a process's error output that is kept, bytes."""

_LOOK = re.compile(rb"([A-Za-z]) (\d{1,18}) (\d{1,9})")
_TICKS = 100
"""Clock ticks of a second that Linux shows to programs."""
_ALIVE = re.compile(rb"s(\d+) ")
_TIMES = re.compile(rb"(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n\Z")


def seen(told: bytes) -> Look | None:
    """What `inside.INTERRUPT` told of the shell; None when it told nothing of the kind."""
    match = _LOOK.fullmatch(told)
    return Look(state=match[1].decode(), cpu_s=int(match[2]) / _TICKS, dying=int(match[3])) if match else None


class Collected:
    """What one process wrote: its output up to a limit, and its errors' tail."""

    def __init__(self, output_bytes: int) -> None:
        self._room = output_bytes
        self._stdout = bytearray()
        self._stderr = HeadTail(2 * STDERR_BYTES)

    @property
    def pid(self) -> int:
        """Process id inside the container, told as a sign of life; 0 before it is."""
        alive = _ALIVE.match(self._stderr.kept)
        return int(alive[1]) if alive else 0

    def take(self, stream: int, data: bytes) -> bool:
        if stream == ERROR:
            self._stderr.add(data)
        else:
            self._stdout += data[: self._room - len(self._stdout)]
        return False

    def result(self, code: int | None, wall_s: float, *, timed_out: bool) -> ProcessResult:
        """Raises SandboxLost when the process never started."""
        said = self._stderr.kept
        alive = _ALIVE.match(said)
        if alive is None:
            raise SandboxLost(f"the process did not start: {said.decode(errors='replace').strip()}")
        told = _TIMES.search(said)
        numbers = [float(number) for number in told.groups()] if told else [0.0] * 8
        return ProcessResult(
            exit_code=code,
            stdout=bytes(self._stdout),
            stderr_tail=said[alive.end() : told.start() if told else None][-STDERR_BYTES:],
            timed_out=timed_out,
            wall_s=wall_s,
            cpu_s=60 * sum(numbers[::2]) + sum(numbers[1::2]),
        )
