"""The contract of a sandbox back end: the same for bubblewrap and docker."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.task import EnvironmentSpec, Mount

WORKSPACE = "/workspace"
"""The working directory, and the only place whose content an episode hands on."""
DEPENDENCIES = "/opt/deps"
"""Where a tree of Python packages is mounted; it is on `PYTHONPATH` when the environment has such a mount."""


@dataclass(frozen=True, kw_only=True)
class ResolvedImage:
    """What a back end made of an image name."""

    name: str
    digest: Digest
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """What one command in the live session did."""

    exit_code: int | None
    """None when the command was killed at its limit."""
    output: bytes
    """Head and tail of stdout and stderr interleaved, at most the limit asked for."""
    omitted_bytes: int = 0
    """Bytes cut from the middle of `output`."""
    timed_out: bool = False
    wall_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ProcessResult:
    """What one process outside the session did, its channel collected whole up to a limit."""

    exit_code: int | None
    stdout: bytes
    stderr_tail: bytes
    timed_out: bool = False
    wall_s: float = 0.0
    cpu_s: float = 0.0


@dataclass(frozen=True)
class Capability:
    """One property of a back end on this machine: does it hold, and what to do where it does not."""

    name: str
    holds: bool
    detail: str


class Sandbox(Protocol):
    """One isolated machine. Not safe for several threads at once."""

    image: ResolvedImage

    def run(self, command: str, *, timeout_s: float, output_bytes: int) -> CommandResult:
        """Run `command` in the live session (directory, variables and functions persist between calls).

        The end of a command is signalled out of band: output cannot forge it. Standard input is
        closed. At the limit the command's processes are killed and the partial output kept.
        Raises SandboxLost when the session is gone or does not answer.
        """
        ...

    def process(self, argv: list[str], *, stdin: bytes, timeout_s: float, output_bytes: int) -> ProcessResult:
        """Run a process beside the session, as the harness does for verifiers; whole group killed at the limit."""
        ...

    def read_file(self, path: str, limit: int) -> bytes:
        """At most `limit` bytes of a regular file, by absolute path. Raises FileNotFoundError, IsADirectoryError
        or PermissionError as the agent itself would meet them."""
        ...

    def write_file(self, path: str, data: bytes) -> None:
        """Replace a file's content by absolute path, with the agent's own rights."""
        ...

    def stop(self) -> None:
        """Kill every process in the sandbox; its files stay readable until `close`. Idempotent."""
        ...

    def export(self) -> Digest:
        """Store the working directory as a tree (links as links, special files as `special`) and return its digest."""
        ...

    def snapshot(self) -> Digest:
        """`export` mid-episode: the processes go on."""
        ...

    def restore(self, tree: Digest) -> None:
        """Make the working directory equal to `tree`; the session starts anew there."""
        ...

    def close(self) -> None:
        """Kill and remove everything. Idempotent."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class Backend(Protocol):
    """Makes sandboxes. Safe for several threads at once."""

    name: str

    def resolve(self, image: str) -> ResolvedImage:
        """Raises ImageError when the image cannot be had here."""
        ...

    def open(self, spec: EnvironmentSpec, blobs: BlobStore, mounts: tuple[Mount, ...] = ()) -> Sandbox:
        """A fresh sandbox with `spec.files` in the working directory and `spec.mounts + mounts` read-only.

        Raises SandboxError when it cannot be made.
        """
        ...

    def capabilities(self) -> list[Capability]:
        """What holds on this machine, for `factory doctor` and for the record of each run."""
        ...

    def close(self) -> None:
        """Release what the back end itself holds."""
        ...
