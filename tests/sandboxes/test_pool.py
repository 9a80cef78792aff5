"""The pool: sandboxes are ready before they are asked for, bounded, and none is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError, SandboxLost
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec
from sandboxes.contract import Backend, Mount
from sandboxes.pool import PoolConfig, PrefetchingBackend

ONE = EnvironmentSpec(files="1" * 64)
OTHER = EnvironmentSpec(files="2" * 64)


class Recorded:
    """A sandbox that only tells what was done to it."""

    def __init__(self, spec: EnvironmentSpec, fails: bool) -> None:
        self.spec, self.fails = spec, fails
        self.started = self.closed = False

    def start(self) -> None:
        if self.fails:
            raise SandboxLost("the shell did not start")
        self.started = True

    def close(self) -> None:
        self.closed = True


class Slow:
    """A back end whose sandboxes open when `gate` does."""

    name = "slow"

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.opened: list[Recorded] = []
        self.fault: Exception | None = None
        self.start_fails = self.closed = False

    def open(self, spec: EnvironmentSpec, blobs: Any, mounts: tuple[Mount, ...] = (), *, snapshot: Any = None) -> Recorded:
        assert self.gate.wait(10)
        if self.fault is not None:
            raise self.fault
        self.opened.append(Recorded(spec, self.start_fails))
        return self.opened[-1]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def slow() -> Slow:
    return Slow()


def pool(slow: Slow, **fields: int) -> PrefetchingBackend:
    return PrefetchingBackend(slow, PoolConfig(**fields))  # type: ignore[arg-type]


def eventually(true: Callable[[], bool]) -> bool:
    limit = time.monotonic() + 10
    while not true() and time.monotonic() < limit:
        time.sleep(0.005)
    return true()


def test_what_was_announced_is_ready_and_handed_out_once(slow: Slow, blobs: MemoryBlobs) -> None:
    with pool(slow) as ahead:
        ahead.prefetch(ONE, blobs, count=2)
        ahead.prefetch(OTHER, blobs)
        assert eventually(lambda: sum(one.started for one in slow.opened) == 3)
        slow.gate.clear()  # from here on nothing can be opened
        got = [ahead.open(ONE, blobs), ahead.open(OTHER, blobs), ahead.open(ONE, blobs)]
        assert [one.spec for one in got] == [ONE, OTHER, ONE]  # type: ignore[attr-defined]
        assert len(set(map(id, got))) == 3
        slow.gate.set()
        assert ahead.open(ONE, blobs) is slow.opened[3]
        assert not slow.opened[3].started
    assert slow.closed
    assert not any(one.closed for one in slow.opened)  # they belong to whoever got them


def test_another_store_mount_or_snapshot_is_another_sandbox(slow: Slow, blobs: MemoryBlobs) -> None:
    with pool(slow) as ahead:
        ahead.prefetch(ONE, blobs)
        assert eventually(lambda: len(slow.opened) == 1 and slow.opened[0].started)
        assert ahead.open(ONE, MemoryBlobs()) is slow.opened[1]
        assert ahead.open(ONE, blobs, (Mount(path="/x", tree="3" * 64),)) is slow.opened[2]
        assert ahead.open(ONE, blobs) is slow.opened[0]


def test_no_more_are_held_than_the_bound(slow: Slow, blobs: MemoryBlobs) -> None:
    with pool(slow, held=3, workers=2) as ahead:
        ahead.prefetch(ONE, blobs, count=10)
        assert eventually(lambda: len(slow.opened) == 3)
        time.sleep(0.05)
        assert len(slow.opened) == 3
        ahead.open(ONE, blobs)
        assert eventually(lambda: len(slow.opened) == 4)
        time.sleep(0.05)
        assert len(slow.opened) == 4
        ahead.drop()
        assert [one.closed for one in slow.opened].count(True) == 3
        ahead.prefetch(OTHER, blobs, count=5)
        assert eventually(lambda: len(slow.opened) == 7)
        time.sleep(0.05)
        assert len(slow.opened) == 7
    assert [one.closed for one in slow.opened].count(False) == 1


def test_one_that_is_under_way_is_waited_for(slow: Slow, blobs: MemoryBlobs) -> None:
    slow.gate.clear()
    with pool(slow, workers=1) as ahead:
        ahead.prefetch(ONE, blobs)
        assert eventually(lambda: ahead._held == 1)
        got: list[object] = []
        asker = threading.Thread(target=lambda: got.append(ahead.open(ONE, blobs)))
        asker.start()
        slow.gate.set()
        asker.join(10)
        assert got == slow.opened
        assert slow.opened[0].started
        assert ahead._held == 0


@pytest.mark.parametrize("fault", [SandboxError("no namespace"), ValueError("unknown")])
def test_a_failed_prefetch_is_raised_to_the_one_who_asks_once(slow: Slow, blobs: MemoryBlobs, fault: Exception) -> None:
    slow.fault = fault
    with pool(slow, held=1) as ahead:
        ahead.prefetch(ONE, blobs)
        assert eventually(lambda: ahead._tickets[0].error is fault)
        slow.fault = None
        with pytest.raises(type(fault), match=str(fault)):
            ahead.open(ONE, blobs)
        assert ahead.open(ONE, blobs) is slow.opened[0]


def test_a_sandbox_whose_shell_does_not_start_is_closed_and_reported(slow: Slow, blobs: MemoryBlobs) -> None:
    slow.start_fails = True
    with pool(slow) as ahead:
        ahead.prefetch(ONE, blobs)
        assert eventually(lambda: ahead._tickets[0].error is not None)
        with pytest.raises(SandboxLost, match="did not start"):
            ahead.open(ONE, blobs)
    assert [one.closed for one in slow.opened] == [True]


def test_closing_waits_for_what_is_under_way_and_closes_it(slow: Slow, blobs: MemoryBlobs) -> None:
    slow.gate.clear()
    ahead = pool(slow, workers=2)
    ahead.prefetch(ONE, blobs, count=5)
    assert eventually(lambda: ahead._held == 2)
    closing = threading.Thread(target=ahead.close)
    closing.start()
    assert eventually(lambda: ahead._closed)
    slow.gate.set()
    closing.join(10)
    assert [one.closed for one in slow.opened] == [True, True]
    assert slow.closed
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]
    with pytest.raises(SandboxError, match="closed"):
        ahead.open(ONE, blobs)
    with pytest.raises(SandboxError, match="closed"):
        ahead.prefetch(ONE, blobs)
    ahead.close()


def test_many_threads_get_each_its_own(slow: Slow, blobs: MemoryBlobs) -> None:
    got: list[object] = []
    with pool(slow, held=4, workers=3) as ahead:
        ahead.prefetch(ONE, blobs, count=200)

        def ask() -> None:
            for _ in range(50):
                got.append(ahead.open(ONE, blobs))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ahead._held == 0
    assert len(set(map(id, got))) == len(got) == 200 == len(slow.opened)


def test_real_sandboxes_are_ready_and_none_is_left(
    backend: Backend, tmp_path: Path, blobs: MemoryBlobs, tree: FileTree
) -> None:
    ahead = PrefetchingBackend(backend, PoolConfig(held=3))
    spec = EnvironmentSpec(files=tree.save(blobs))
    ahead.prefetch(spec, blobs, count=3)
    assert eventually(lambda: all(ticket.sandbox for ticket in ahead._tickets))
    held = [ticket.sandbox for ticket in ahead._tickets]
    with ahead.open(spec, blobs) as one:
        assert one in held
        assert one.run("cat a.txt; echo $_", timeout_s=10, output_bytes=100).output == b"one\ntwo\na.txt\n"
        saved = one.snapshot()
        ahead.prefetch(spec, blobs, snapshot=saved)
        with ahead.open(spec, blobs, snapshot=saved) as sibling:
            assert sibling.run("ls | wc -l", timeout_s=10, output_bytes=100).output == b"3\n"
    ahead.drop()
    assert eventually(lambda: ahead._threads == [])
    for sandbox in held:
        assert sandbox is not None
        with pytest.raises(SandboxLost):
            sandbox.run("true", timeout_s=5, output_bytes=10)
