"""One process beside the session: its pipes, and what came through them."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from typing import Self

from factory.core.errors import SandboxLost
from sandboxes.bubblewrap.session import DEATH_S
from sandboxes.contract import ProcessResult
from sandboxes.shell import HeadTail

STDERR_BYTES = 4096
"""Tail of a process's error output that is kept, bytes."""


class Pipes:
    """Standard streams and the status pipe of one process; all closed at the end."""

    def __enter__(self) -> Self:
        child_in, self.stdin = os.pipe2(os.O_CLOEXEC)
        self.stdout, child_out = os.pipe2(os.O_CLOEXEC)
        self.stderr, child_err = os.pipe2(os.O_CLOEXEC)
        self.status, child_status = os.pipe2(os.O_CLOEXEC)
        self.theirs: tuple[int, ...] = (child_in, child_out, child_err, child_status, child_status)
        for descriptor in (self.stdin, self.stdout, self.stderr, self.status):
            os.set_blocking(descriptor, False)
        return self

    def close_theirs(self) -> None:
        for descriptor in set(self.theirs):
            os.close(descriptor)
        self.theirs = ()

    def __exit__(self, *_: object) -> None:
        self.close_theirs()
        for descriptor in (self.stdin, self.stdout, self.stderr, self.status):
            if descriptor >= 0:
                os.close(descriptor)


class Collector:
    """Feeds a process and collects its output until its whole group is gone."""

    def __init__(self, pipes: Pipes, stdin: bytes, output_bytes: int) -> None:
        self._pipes, self._stdin, self._room = pipes, memoryview(stdin), output_bytes
        self._stdout = bytearray()
        self._stderr = HeadTail(2 * STDERR_BYTES)
        self._status = bytearray()

    def collect(self, timeout_s: float, end: Callable[[], None]) -> ProcessResult:
        started = time.monotonic()
        deadline, timed_out = started + timeout_s, False
        poll = select.poll()
        for descriptor in (self._pipes.stdout, self._pipes.stderr, self._pipes.status):
            poll.register(descriptor, select.POLLIN)
        poll.register(self._pipes.stdin, select.POLLOUT)
        while not self._status.endswith(b"}"):
            left = deadline - time.monotonic()
            if left <= 0:
                if timed_out:
                    raise SandboxLost("the processes of a sandbox do not die")
                end()
                timed_out, deadline = True, time.monotonic() + DEATH_S
                continue
            self._move(poll, left)
        while self._take(self._pipes.stdout, self._keep) or self._take(self._pipes.stderr, self._stderr.add):
            pass
        return self._result(timed_out, time.monotonic() - started)

    def _move(self, poll: select.poll, left: float) -> None:
        for descriptor, _ in poll.poll(left * 1000):
            if descriptor == self._pipes.stdin:
                if not self._feed():
                    poll.unregister(descriptor)
                    os.close(descriptor)
                    self._pipes.stdin = -1
            elif descriptor == self._pipes.status:
                if not self._take(descriptor, self._status.extend):
                    raise SandboxLost("the namespace helper ended")
            elif not self._take(descriptor, self._keep if descriptor == self._pipes.stdout else self._stderr.add):
                poll.unregister(descriptor)

    def _feed(self) -> bool:
        """Write what the process takes; False when all is written or it takes no more."""
        try:
            self._stdin = self._stdin[os.write(self._pipes.stdin, self._stdin[: 1 << 16]) :] if self._stdin else self._stdin
        except BrokenPipeError:
            return False
        except BlockingIOError:
            return True
        return bool(self._stdin)

    def _take(self, descriptor: int, add: Callable[[bytes], None]) -> bool:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return False
        if data:
            add(data)
        return bool(data)

    def _keep(self, data: bytes) -> None:
        self._stdout += data[: self._room - len(self._stdout)]

    def _result(self, timed_out: bool, wall_s: float) -> ProcessResult:
        started, _, end = bytes(self._status).partition(b"{")
        stderr = self._stderr.kept[-STDERR_BYTES:]
        if started != b"s":
            raise SandboxLost(f"the process did not start: {stderr.decode(errors='replace').strip()}")
        value = json.loads(b"{" + end)
        code = value["exit"] if value["exit"] >= 0 else 128 - value["exit"]
        return ProcessResult(
            exit_code=None if timed_out else code,
            stdout=bytes(self._stdout),
            stderr_tail=stderr,
            timed_out=timed_out,
            wall_s=wall_s,
            cpu_s=value["cpu_s"],
        )
