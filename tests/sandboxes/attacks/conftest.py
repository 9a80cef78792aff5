"""One sandbox for all the probes of a module, and what a probe says when it got through."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec
from sandboxes.contract import Backend, Sandbox

GOT = "GOT THROUGH"
"""Printed by a probe that did what it should not be able to do."""
Probe = Callable[[str], str]
"""Runs Python code and returns all that it printed."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is slow in a namespace takes minutes in containers: there it belongs to the long tests."""
    for item in items:
        here = item.path.is_relative_to(Path(__file__).parent)
        if here and item.get_closest_marker("slow") and item.get_closest_marker("docker"):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="module")
def cell(backend: Backend) -> Iterator[Sandbox]:
    """A sandbox that every probe of a module uses: each has to leave it usable."""
    blobs = MemoryBlobs()
    with backend.open(EnvironmentSpec(files=FileTree.of(blobs, {"a.txt": "one\n"}).save(blobs)), blobs) as opened:
        yield opened


@pytest.fixture
def inside(cell: Sandbox) -> Iterator[Probe]:
    """A probe's way to run in the sandbox, which has to work afterwards."""

    def run(code: str) -> str:
        output = cell.run(f"python3 -c {shlex.quote(code)}", timeout_s=20, output_bytes=20_000).output
        return output.decode(errors="replace")

    yield run
    assert works(cell)


@pytest.fixture(scope="session")
def outside() -> Probe:
    """The same on this machine, without a sandbox: the control."""

    def run(code: str) -> str:
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        return ended.stdout + ended.stderr

    return run


def ask(sandbox: Sandbox, command: str, timeout_s: float = 20) -> bytes:
    """What a command prints."""
    return sandbox.run(command, timeout_s=timeout_s, output_bytes=20_000).output


def works(sandbox: Sandbox) -> bool:
    """Whether a command, at most the one after a lost shell, runs as it should."""
    ask(sandbox, ":")
    return ask(sandbox, "echo $((6 * 7))").endswith(b"42\n")
