"""Sandboxes opened ahead of need, so that an episode's reset takes no time: a back end that wraps another."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self

from factory.core.blobs import BlobStore
from factory.core.errors import SandboxError
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import Backend, Capability, ResolvedImage, Sandbox, Snapshot


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """How far ahead sandboxes are opened."""

    held: int = 32
    """Most sandboxes that are being opened or wait for someone to ask; what is announced beyond waits its turn."""
    workers: int = 2
    """Threads that open them."""


class _State(Enum):
    QUEUED = "queued"
    OPENING = "opening"
    DONE = "done"


@dataclass(frozen=True)
class _Want:
    """What a sandbox is asked for by; equal wants get each other's sandboxes."""

    spec: EnvironmentSpec
    mounts: tuple[Mount, ...]
    snapshot: Snapshot | None
    store: int
    """Identity of the blob store."""


@dataclass(eq=False)
class _Ticket:
    want: _Want
    blobs: BlobStore
    state: _State = _State.QUEUED
    sandbox: Sandbox | None = None
    error: Exception | None = None


class PrefetchingBackend:
    """See `sandboxes.contract.Backend`. `prefetch` announces what will be asked of `open`, which then hands out a sandbox
    whose shell already runs; what was not announced is opened as ever. Safe for several threads at once."""

    def __init__(self, backend: Backend, config: PoolConfig = PoolConfig()) -> None:
        """`close` closes `backend` too; `drop` closes only what the pool opened and nobody asked for. Threads run only while
        something announced is not opened yet."""
        self.name = backend.name
        self._backend, self._config = backend, config
        self._changed = threading.Condition()
        self._tickets: deque[_Ticket] = deque()
        """Announced and not asked for yet, the oldest first."""
        self._held = 0
        """Sandboxes that are being opened by the pool, or wait."""
        self._threads: list[threading.Thread] = []
        self._closed = False

    def prefetch(
        self,
        spec: EnvironmentSpec,
        blobs: BlobStore,
        mounts: tuple[Mount, ...] = (),
        *,
        snapshot: Snapshot | None = None,
        count: int = 1,
    ) -> None:
        """Announce that `open` will be called `count` times with these arguments. Returns at once.

        Raises SandboxError after `close`.
        """
        want = _Want(spec, mounts, snapshot, id(blobs))
        with self._changed:
            self._check_open()
            self._tickets.extend(_Ticket(want, blobs) for _ in range(count))
            for _ in range(min(self._config.workers, len(self._queued())) - len(self._threads)):
                self._threads.append(threading.Thread(target=self._work, name="prefetch", daemon=True))
                self._threads[-1].start()

    def open(
        self, spec: EnvironmentSpec, blobs: BlobStore, mounts: tuple[Mount, ...] = (), *, snapshot: Snapshot | None = None
    ) -> Sandbox:
        """As the wrapped back end; what it raised for a sandbox that was announced is raised here, once."""
        with self._changed:
            self._check_open()
            ticket = self._claim(_Want(spec, mounts, snapshot, id(blobs)))
            while ticket is not None and ticket.state is _State.OPENING:
                self._changed.wait()
        if ticket is None or ticket.state is _State.QUEUED:
            return self._backend.open(spec, blobs, mounts, snapshot=snapshot)
        if ticket.error is not None:
            raise ticket.error
        assert ticket.sandbox is not None
        return ticket.sandbox

    def _claim(self, want: _Want) -> _Ticket | None:
        """The ticket for `want` that is furthest: no longer announced from now on. One still queued is opened by the asker."""
        fitting = [ticket for ticket in self._tickets if ticket.want == want]
        for state in (_State.DONE, _State.OPENING, _State.QUEUED):
            for ticket in fitting:
                if ticket.state is state:
                    self._tickets.remove(ticket)
                    self._held -= state is _State.DONE and ticket.sandbox is not None
                    self._changed.notify_all()
                    return ticket
        return None

    def _work(self) -> None:
        while (ticket := self._take()) is not None:
            self._open(ticket)

    def _take(self) -> _Ticket | None:
        """The next ticket to open for, once there is room; None when this thread is not needed any more."""
        with self._changed:
            while not self._closed and (queued := self._queued()):
                if self._held < self._config.held:
                    queued[0].state = _State.OPENING
                    self._held += 1
                    return queued[0]
                self._changed.wait()
            self._threads.remove(threading.current_thread())
            return None

    def _queued(self) -> list[_Ticket]:
        return [ticket for ticket in self._tickets if ticket.state is _State.QUEUED]

    def _open(self, ticket: _Ticket) -> None:
        want = ticket.want
        sandbox: Sandbox | None = None
        try:
            sandbox = self._backend.open(want.spec, ticket.blobs, want.mounts, snapshot=want.snapshot)
            sandbox.start()
        except Exception as error:  # noqa: BLE001 (whoever asks for this sandbox gets it raised)
            if sandbox is not None:
                with contextlib.suppress(SandboxError):
                    sandbox.close()
            ticket.error, sandbox = error, None
        with self._changed:
            ticket.sandbox, ticket.state = sandbox, _State.DONE
            if ticket not in self._tickets or sandbox is None:
                self._held -= 1
            self._changed.notify_all()

    def drop(self) -> None:
        """Forget what was announced and not asked for, and close what was opened for it."""
        with self._changed:
            forgotten, self._tickets = self._tickets, deque()
            self._changed.notify_all()
            for ticket in forgotten:
                self._held -= ticket.state is _State.DONE and ticket.sandbox is not None
                while ticket.state is _State.OPENING:
                    self._changed.wait()
        for ticket in forgotten:
            if ticket.sandbox is not None:
                ticket.sandbox.close()

    def resolve(self, image: str) -> ResolvedImage:
        return self._backend.resolve(image)

    def capabilities(self) -> list[Capability]:
        return self._backend.capabilities()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            threads = [*self._threads]
        for thread in threads:
            thread.join()
        self.drop()
        self._backend.close()

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("the pool of sandboxes is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
