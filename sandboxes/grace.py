"""How long a shell may take to come back after its command was ended at the limit: as long as it gets anywhere.

A wall time alone would lose shells where the machine is busy, and with them an agent's variables, by no fault of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

LOAD_S = 5.0
"""Seconds that a shell may take in all, however busy the machine is, or stopped."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was seen of a shell."""

    state: str
    """Letter of `/proc/PID/stat`."""
    cpu_s: float
    """Processor time that it took since it began, seconds."""
    dying: int
    """Processes of the command that were killed and are not gone: the shell waits for them."""


class Grace:
    """Decides by successive looks whether a shell still comes back."""

    def __init__(self, now: float, rest_s: float) -> None:
        """`rest_s`: seconds for which it may sleep with nothing to wait for, and seconds of processor time it may take."""
        self._end, self._rest_s = now + LOAD_S, rest_s
        self._first: Look | None = None
        self._last: Look | None = None
        self._resting = now

    def over(self, now: float, look: Look | None) -> bool:
        """Whether to give the shell up; `look` is None when it cannot be seen."""
        moved = look is not None and self._last is not None and look.cpu_s != self._last.cpu_s
        if look is not None and (look.state != "S" or look.dying or moved):
            self._resting = now
        self._first, self._last = self._first or look, look
        spent = look is not None and self._first is not None and look.cpu_s - self._first.cpu_s >= self._rest_s
        return spent or now >= self._end or now - self._resting >= self._rest_s
