"""Real back ends for the room's tests: bubblewrap always, docker where an engine answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Limits
from sandboxes.contract import Backend, CommandResult, Sandbox
from tests.engines import bubblewrap_backend, docker_backend


@pytest.fixture(scope="session", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    cache = tmp_path_factory.mktemp("cache")
    opened = docker_backend(cache) if request.param == "docker" else bubblewrap_backend(cache)
    yield opened
    opened.close()


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture
def tree(blobs: MemoryBlobs) -> FileTree:
    return FileTree.of(
        blobs,
        {
            "a.txt": "one\ntwo\n",
            "src/b.py": "print('b')\n",
            "src/deep/c.txt": "c",
            "src/deep/d.txt": "d",
            "run.sh": "echo ran\n",
        },
        executable=frozenset({"run.sh"}),
    )


Make = Callable[..., Sandbox]


@pytest.fixture
def make(backend: Backend, blobs: MemoryBlobs, tree: FileTree) -> Iterator[Make]:
    """Opens sandboxes over `tree` with changed limits or fields; all are closed at the end."""
    opened: list[Sandbox] = []

    def open_one(
        limits: dict[str, int] | None = None, files: FileTree | None = None, mounts: Any = (), **fields: Any
    ) -> Sandbox:
        digest = (tree if files is None else files).save(blobs)
        spec = EnvironmentSpec(files=digest, limits=Limits(**(limits or {})), **fields)
        opened.append(backend.open(spec, blobs, mounts))
        return opened[-1]

    yield open_one
    for sandbox in opened:
        sandbox.close()


@pytest.fixture
def sandbox(make: Make) -> Sandbox:
    return make()


Run = Callable[..., CommandResult]


@pytest.fixture
def run(sandbox: Sandbox) -> Run:
    """Runs one command in `sandbox` with roomy limits."""

    def run_one(command: str, timeout_s: float = 20, output_bytes: int = 20_000) -> CommandResult:
        return sandbox.run(command, timeout_s=timeout_s, output_bytes=output_bytes)

    return run_one
