"""The namespace helper: no request ends it, and with it every sandbox of the back end."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxError, SandboxLost
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec
from sandboxes.bubblewrap.backend import BubblewrapBackend
from sandboxes.bubblewrap.client import HelperClient
from sandboxes.bubblewrap.image import resolve
from sandboxes.bubblewrap.processes import descendants


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BubblewrapBackend]:
    """A back end whose helper may end."""
    backend = BubblewrapBackend(tmp_path_factory.mktemp("cache"))
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def helper(own: BubblewrapBackend) -> HelperClient:
    return own.helper(resolve("python-3.11"))


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


SPAWN = {"box": 1, "env": {}, "cores": 0}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "unknown operation": ("dance", {}),
    "unknown field": ("kill", {"box": 1, "job": 2}),
    "no box": ("usage", {}),
    "box that was never made": ("close", {"box": 99}),
    "other kinds of values": ("open", {"layers": 1, "mounts": None, "scratch": 2, "disk": "x", "taken": {}, "inodes": []}),
    "one word too many": ("usage", {"box": 1, "words": ["x"]}),
    "no descriptors": ("spawn", {**SPAWN, "words": ["true"]}),
    "half a character": ("spawn", {**SPAWN, "words": ["\ud800"]}),
    "a NUL": ("spawn", {**SPAWN, "words": ["a\0b"]}),
    "too large": ("spawn", {**SPAWN, "words": ["x" * (1 << 20)]}),
    "too large by escapes": ("usage", {"box": "\x1b" * 60_000}),
    "an answer that is large": ("usage\x1b" * 7000, {}),
    "deep": ("usage", {"box": nested(400)}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_cannot_be_served_is_only_refused(own: BubblewrapBackend, helper: HelperClient, name: str) -> None:
    blobs = MemoryBlobs()
    op, fields = REQUESTS[name]
    with own.open(EnvironmentSpec(files=FileTree().save(blobs)), blobs) as neighbour:
        neighbour.run("x=here", timeout_s=20, output_bytes=100)
        with pytest.raises(SandboxError) as refused:
            helper.call(op, **fields)
        assert not isinstance(refused.value, SandboxLost)
        assert neighbour.run("echo $x", timeout_s=20, output_bytes=100).output == b"here\n"
    assert own.helper(resolve("python-3.11")) is helper


CHAIN = """
import os, time
for _ in range(80):
    if os.fork():
        os.wait()
        break
else:
    print("deep", flush=True)
    time.sleep(60)
"""


def test_a_long_line_of_processes_is_no_deep_call() -> None:
    with subprocess.Popen([sys.executable, "-c", CHAIN], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None and first.stdout.readline() == b"deep\n"
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(len(inspect.stack(0)) + 40)
        try:
            found = descendants(first.pid)
        finally:
            sys.setrecursionlimit(limit)
        try:
            assert len(found) == len(set(found)) == 80
        finally:
            for pid in (first.pid, *found):
                subprocess.run(["kill", "-9", str(pid)], check=False, capture_output=True)
