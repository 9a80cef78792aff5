"""The live shell of one container, over the connection of a docker exec.

Commands go in on standard input; output comes back on the output stream and the shell's answers on the error stream.
The engine copies the two streams apart, so the shell also prints a random marker after each command's output.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from factory.core.errors import SandboxLost
from sandboxes.contract import CommandResult
from sandboxes.docker.stream import ERROR, ExecStream
from sandboxes.grace import Grace, Look
from sandboxes.shell import NEW_SHELL, Frames, HeadTail, command_script, fresh_nonce
from sandboxes.state import DUMP_S, ShellState, dump_script

START_S = 30.0
"""Seconds that a new shell may take before its sandbox counts as lost."""
GRACE_S = 2.0
"""Seconds that a shell may rest, or compute, after its command's processes were killed at the limit."""
EARLY_BYTES = 1 << 16
"""Output between two commands that is kept, bytes."""
LOOK_S = 0.5
"""Seconds between two looks whether the shell still runs: a background job can hold the connection open."""


@dataclass(frozen=True, kw_only=True)
class Hands:
    """What a session needs done by its sandbox."""

    spawn: Callable[[], ExecStream]
    """Start the shell."""
    interrupt: Callable[[float], Look | None]
    """Signal the shell, kill what started since a time of the monotonic clock, seconds, and tell what is seen of the shell."""
    end: Callable[[], None]
    """Kill every process of the container but the first."""


class Session:
    """One bash and its connection. `closed` once it ended; then a new one has to be made."""

    def __init__(self, hands: Hands, opening: bytes, said: bytes = b"") -> None:
        """`said` is shown before the output of the first command."""
        self._hands = hands
        self._stream = hands.spawn()
        self._stream.send(b"exec 3>&2 4>&1 2>&1 && " + opening)
        self._frames = Frames()
        self._early = said
        self.closed = False

    def run(self, command: bytes, timeout_s: float, output_bytes: int) -> CommandResult:
        """Run one command; see `Sandbox.run`. Raises SandboxLost when the shell never started."""
        started = time.monotonic()
        answer = _Answer(self._frames, fresh_nonce(), fresh_nonce(), HeadTail(output_bytes))
        self._stream.send(command_script(command, answer.nonce, answer.marker))
        answer.take_output(self._early)
        self._early = b""
        self._await(answer, started + timeout_s)
        timed_out = not answer.complete and not self.closed
        if timed_out:
            self._interrupt(answer, started)
        self._early = answer.settle()
        if self.closed:
            code = self._bury(answer)
            answer.kept.add(NEW_SHELL % (b"killed at the limit" if timed_out else b"status %d" % code))
        else:
            assert answer.code is not None or timed_out
            code = answer.code or 0
        return CommandResult(
            exit_code=None if timed_out else code,
            output=answer.kept.kept,
            omitted_bytes=answer.kept.omitted,
            timed_out=timed_out,
            wall_s=time.monotonic() - started,
        )

    def _interrupt(self, answer: _Answer, started: float) -> None:
        """Kill what the command started; when the shell does not come back by itself, kill the shell too."""
        grace = Grace(time.monotonic(), GRACE_S)
        while not grace.over(time.monotonic(), self._hands.interrupt(started)):
            self._await(answer, time.monotonic() + GRACE_S / 5)
            if answer.complete or self.closed:
                return
        self.kill()

    def state(self) -> ShellState | None:
        """What the shell tells of itself; None when it does not, and then it may be `closed`. Raises SandboxLost."""
        answer = _Answer(self._frames, fresh_nonce(), fresh_nonce(), HeadTail(EARLY_BYTES))
        told: list[bytes] = []
        self._frames.told = told
        self._stream.send(dump_script(answer.nonce, answer.marker))
        answer.take_output(self._early)
        self._await(answer, time.monotonic() + DUMP_S)
        self._frames.told = None
        self._early = answer.kept.kept + answer.settle()
        if not answer.complete:
            self.close()
        return ShellState.told(told) if answer.complete and answer.code == 0 else None

    def _await(self, answer: _Answer, deadline: float) -> None:
        """Move bytes until the answer is complete, the deadline passes or the shell ends."""
        begin = time.monotonic()
        while not answer.complete and not self.closed:
            limit = deadline if self._frames.ready else max(deadline, begin + START_S)
            now = time.monotonic()
            if now >= limit:
                if not self._frames.ready:
                    raise SandboxLost(f"the shell did not start within {START_S:.0f} s")
                return
            self._stream.pump(min(limit, now + LOOK_S), answer.take)
            if self._frames.spoilt:
                self.kill()
            elif not answer.complete and (self._stream.ended or self._stream.exit_code() is not None):
                self._stream.pump(time.monotonic() + LOOK_S / 5, answer.take)
                self.kill()

    def kill(self) -> None:
        """Kill the shell and every other process that the sandbox runs."""
        if not self.closed:
            self.closed = True
            self._hands.end()

    def _bury(self, answer: _Answer) -> int:
        self._stream.pump(time.monotonic() + LOOK_S / 5, answer.take)
        code = self._stream.exit_code()
        self._stream.close()
        if not self._frames.ready:
            raise SandboxLost(f"the shell did not start: {answer.kept.kept.decode(errors='replace').strip()[-500:]}")
        return 137 if code is None else code

    def close(self) -> None:
        """Kill the shell and close its connection. Idempotent."""
        self.kill()
        self._stream.close()

    def abandon(self) -> None:
        """Close the connection of a container that is about to be removed. Idempotent."""
        self.closed = True
        self._stream.close()


class _Answer:
    """Collects one command's output up to its marker, and its status."""

    def __init__(self, frames: Frames, nonce: bytes, marker: bytes, kept: HeadTail) -> None:
        self.nonce, self.marker, self.kept = nonce, marker, kept
        self._frames = frames
        self._window = b""
        self._after: bytes | None = None
        self.code: int | None = None

    @property
    def complete(self) -> bool:
        return self.code is not None and self._after is not None

    def take(self, stream: int, data: bytes) -> bool:
        """Take received bytes; true once the answer is complete or can never be."""
        if stream == ERROR:
            code = self._frames.add(data, self.nonce)
            self.code = self.code if code is None else code
        else:
            self.take_output(data)
        return self.complete or self._frames.spoilt

    def take_output(self, data: bytes) -> None:
        """Take output; what may be the start of the marker waits in a window."""
        if self._after is not None:
            self._after += data
            return
        window = self._window + data
        before, found, after = window.partition(self.marker)
        if found:
            self.kept.add(before)
            self._after = after
            return
        hold = len(self.marker) - 1
        self.kept.add(window[:-hold])
        self._window = window[-hold:]

    def settle(self) -> bytes:
        """What came after the marker: a background job's output, for the next command to show."""
        if self._after is None:
            self.kept.add(self._window)
            self._window = b""
        return self._after or b""
