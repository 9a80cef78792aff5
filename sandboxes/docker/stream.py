"""The hijacked connection of a docker exec: standard input one way, multiplexed output and error the other."""

from __future__ import annotations

import collections
import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from docker import APIClient
from docker.errors import APIError

from factory.core.errors import SandboxLost

OUTPUT = 1
ERROR = 2

_HEADER = struct.Struct(">BxxxL")


class ExecStream:
    """One exec. Writes never block on a reader that does not read: they are queued and sent while reading."""

    def __init__(self, engine: APIClient, container: str, argv: list[str], **options: Any) -> None:
        """Start `argv` in `container`. Raises SandboxLost when the engine refuses (the container is gone or full)."""
        try:
            self.id: str = engine.exec_create(container, argv, stdin=True, stdout=True, stderr=True, **options)["Id"]
            raw = engine.exec_start(self.id, socket=True)
        except APIError as error:
            raise SandboxLost(f"the engine starts nothing in the container: {error.explanation}") from error
        self._engine = engine
        self._response = raw._response
        self._socket: socket.socket = raw._sock
        self._socket.setblocking(False)
        # What came in one packet with the reply's headers waits in the reader above the socket.
        self._received = bytearray(self._response.raw._fp.fp.peek() or b"")
        self._queue: collections.deque[tuple[int, bytes]] = collections.deque()
        self._unsent = bytearray()
        self._closing = False
        self.ended = False

    def send(self, data: bytes, *, last: bool = False) -> None:
        """Queue `data` for standard input; `last` closes it after."""
        self._unsent += data
        self._closing = self._closing or last

    def pump(self, deadline: float, take: Callable[[int, bytes], bool]) -> bool:
        """Move bytes until `take(stream, data)` is true (True), or the deadline or the exec's end (False)."""
        poll = select.poll()
        while True:
            self._queue += self._frames()
            while self._queue:
                if take(*self._queue.popleft()):
                    return True
            left = deadline - time.monotonic()
            if self.ended or left <= 0:
                return False
            wanted = select.POLLIN | (select.POLLOUT if self._unsent or self._closing else 0)
            poll.register(self._socket, wanted)
            for _, ready in poll.poll(left * 1000):
                self._move(ready)

    def _move(self, ready: int) -> None:
        if ready & select.POLLOUT:
            self._write()
        if ready & ~select.POLLOUT:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            self._received += data
            self.ended = not data

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            if self._unsent:
                del self._unsent[: self._socket.send(self._unsent[: 1 << 16])]
        if self._closing and not self._unsent:
            self._closing = False
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def _frames(self) -> list[tuple[int, bytes]]:
        """Whole and partial frames received so far; what is left of a frame keeps its header."""
        found, position = [], 0
        view = self._received
        while len(view) - position > _HEADER.size:
            stream, size = _HEADER.unpack_from(view, position)
            data = bytes(view[position + _HEADER.size : position + _HEADER.size + size])
            position += _HEADER.size + len(data)
            found.append((stream, data))
            if len(data) < size:
                position -= _HEADER.size
                _HEADER.pack_into(view, position, stream, size - len(data))
                break
        del view[:position]
        return found

    def exit_code(self) -> int | None:
        """Exit code of an ended exec, None while it runs."""
        code: int | None = self._engine.exec_inspect(self.id)["ExitCode"]
        return code

    def close(self) -> None:
        """Close the connection; what runs goes on. Idempotent."""
        self.ended = True
        self._response.close()
        self._socket.close()
