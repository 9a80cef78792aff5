"""The live shell of one sandbox, driven over pipes by one thread."""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import select
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass

from factory.core.errors import SandboxLost
from sandboxes.contract import CommandResult
from sandboxes.grace import Grace, Look
from sandboxes.shell import NEW_SHELL, Frames, HeadTail, command_script, fresh_nonce
from sandboxes.state import DUMP_S, ShellState, dump_script

START_S = 20.0
"""Seconds that a new shell may take before its sandbox counts as lost."""
GRACE_S = 0.5
"""Seconds that a shell may rest, or compute, after its command's processes were killed at the limit."""
DEATH_S = 10.0
"""Seconds that killed processes may take to be gone before the sandbox counts as lost."""

EARLY_BYTES = 1 << 16
"""Output between two commands that is kept, bytes."""

_CHUNK = 1 << 16
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Hands:
    """What a session needs done by its sandbox."""

    spawn: Callable[[tuple[int, ...]], int]
    """Start the shell with these descriptors (0, 1, 2, 3, then the status pipe) and return its job."""
    interrupt: Callable[[int, int], Look | None]
    """Signal a job's shell, kill what it started since a time in clock ticks, and tell what is seen of the shell."""
    end: Callable[[int], None]
    """Kill a job."""


class Session:
    """One bash and the pipes to it. `closed` once it ended; then a new one has to be made."""

    def __init__(self, hands: Hands, opening: bytes) -> None:
        self._hands = hands
        self.closed = False
        theirs, ours = [], []
        for outward in (True, False, False, False):  # commands in; output, status and end out
            read, write = os.pipe2(os.O_CLOEXEC)
            theirs.append(read if outward else write)
            ours.append(write if outward else read)
        self._commands, self._output, self._status, self._end = ours
        commands, output, status, end = theirs
        try:
            self._job = hands.spawn((commands, output, output, status, end))
        except BaseException:
            self._release()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        for descriptor in ours:
            os.set_blocking(descriptor, False)
        self._pending = bytearray(opening)
        self._frames = Frames()
        self._early = b""
        self._poll = select.poll()
        for descriptor in (self._output, self._status, self._end):
            self._poll.register(descriptor, select.POLLIN)

    def run(self, command: bytes, timeout_s: float, output_bytes: int) -> CommandResult:
        """Run one command; see `Sandbox.run`. Raises SandboxLost when the sandbox never started or will not die."""
        started = time.monotonic()
        since = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)
        kept, nonce = HeadTail(output_bytes), fresh_nonce()
        kept.add(self._early)
        self._early = b""
        self._pending += command_script(command, nonce)
        code = self._await(nonce, kept, started + timeout_s)
        timed_out = code is None and not self.closed
        if timed_out:
            self._interrupt(nonce, kept, since)
        if self.closed:
            code = self._bury(kept)
            reason = b"killed at the limit" if timed_out else b"status %d" % code
            kept.add(NEW_SHELL % reason)
        return CommandResult(
            exit_code=None if timed_out else code,
            output=kept.kept,
            omitted_bytes=kept.omitted,
            timed_out=timed_out,
            wall_s=time.monotonic() - started,
        )

    def state(self) -> ShellState | None:
        """What the shell tells of itself; None when it does not, and then it may be `closed`. Raises SandboxLost.

        What background jobs print meanwhile belongs to the next command.
        """
        kept, nonce = HeadTail(EARLY_BYTES), fresh_nonce()
        kept.add(self._early)
        told: list[bytes] = []
        self._frames.told = told
        self._pending += dump_script(nonce)
        code = self._await(nonce, kept, time.monotonic() + DUMP_S)
        self._frames.told = None
        self._early = kept.kept
        if code is None:
            self.close()
        return ShellState.told(told) if code == 0 else None

    def _interrupt(self, nonce: bytes, kept: HeadTail, since: int) -> None:
        """Kill what the command started; when the shell does not come back by itself, kill the shell too."""
        grace = Grace(time.monotonic(), GRACE_S)
        while not grace.over(time.monotonic(), self._hands.interrupt(self._job, since)):
            if self._await(nonce, kept, time.monotonic() + GRACE_S / 5) is not None or self.closed:
                return
        self.kill()

    def kill(self) -> None:
        """Kill the shell and every process of its namespace, and wait until they are gone."""
        if self.closed:
            return
        self._hands.end(self._job)
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        if not poll.poll(DEATH_S * 1000):
            raise SandboxLost("the processes of a sandbox do not die")
        self.closed = True

    def _await(self, nonce: bytes, kept: HeadTail, deadline: float) -> int | None:
        """Move bytes until the answer to `nonce` (its exit status), the deadline (None) or the shell's end (None)."""
        if self._pending:
            self._poll.register(self._commands, select.POLLOUT)
        allowed = deadline if self._frames.ready else max(deadline, time.monotonic() + START_S)
        while True:
            left = allowed - time.monotonic()
            if left <= 0:
                if not self._frames.ready:
                    raise SandboxLost(f"the shell did not start within {START_S:.0f} s")
                return None
            ready = {descriptor for descriptor, _ in self._poll.poll(left * 1000)}
            if self._commands in ready:
                self._feed()
            if self._output in ready:
                self._drain(kept, _CHUNK)
            if self._status in ready and (code := self._answer(nonce)) is not None:
                self._drain(kept, self._waiting())
                return code
            if self._end in ready:
                self.closed = True
            if self.closed:
                return None
            if self._frames.ready:
                allowed = deadline

    def _feed(self) -> None:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            del self._pending[: os.write(self._commands, self._pending[:_CHUNK])]
        if not self._pending:
            self._poll.unregister(self._commands)

    def _drain(self, kept: HeadTail, amount: int) -> None:
        """Read at most `amount` bytes of output."""
        with contextlib.suppress(BlockingIOError):
            while amount > 0 and (data := os.read(self._output, min(amount, _CHUNK))):
                kept.add(data)
                amount -= len(data)

    def _waiting(self) -> int:
        """Bytes of output in the pipe now: all that the command wrote is among them; a background job's flood is not."""
        count = array.array("i", [0])
        fcntl.ioctl(self._output, termios.FIONREAD, count)
        return count[0]

    def _answer(self, nonce: bytes) -> int | None:
        """Take frames of the status channel; what is neither ready nor the answer ends the session."""
        with contextlib.suppress(BlockingIOError):
            code = self._frames.add(os.read(self._status, _CHUNK), nonce)
            if self._frames.spoilt:
                self.kill()
            return code
        return None

    def _bury(self, kept: HeadTail) -> int:
        """Take what is left of an ended shell: its last output and exit status."""
        self._drain(kept, self._waiting())
        told = os.read(self._end, 4096)
        self._release()
        if not told:
            raise SandboxLost("the namespace helper ended")
        code: int = json.loads(told)["exit"]
        if not self._frames.ready:
            raise SandboxLost(f"the shell did not start: {kept.kept.decode(errors='replace').strip()[-500:]}")
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        """Kill the shell and close the pipes. Idempotent."""
        self.kill()
        self._release()

    def _release(self) -> None:
        self.closed = True
        for descriptor in (self._commands, self._output, self._status, self._end):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._commands = self._output = self._status = self._end = -1
