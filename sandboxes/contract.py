"""The contract of a sandbox back end: the same for bubblewrap and docker."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.outcome import ResourceUse
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


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A sandbox's state by digests, its content in the blob store: data, from which any number of siblings can be opened.

    Carried: the working directory, `/tmp` and the home as trees (no times, owners or modes but "executable"), and the live
    shell's directory, variables, functions, aliases, options, traps and umask (`sandboxes.state`). Not carried: running
    processes, open descriptors, `/dev/shm`. What background jobs write while a snapshot is taken may be in it in part.
    """

    tree: Digest
    """The working directory, as `export` would name it."""
    scratch: Digest | None = None
    """Tree of `tmp/...` and `home/...`; None when both are empty."""
    session: Digest | None = None
    """Blob of what the live shell told of itself (`ShellState`); None for a new shell in the working directory."""
    session_lost: bool = False
    """There was a shell but it did not tell its state: siblings begin with a new one, and their first output says so."""


class FileRefused(Exception):
    """A file was neither read nor written, by the agent's doing; the text says why, for the agent. It is as it was."""


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
        or PermissionError as the agent itself would meet them, FileRefused for what else the agent brought about
        (no room, a lock, a killed process), and SandboxError for faults of the machine alone."""
        ...

    def write_file(self, path: str, data: bytes) -> None:
        """Replace a file's content by absolute path, with the agent's own rights. Raises as `read_file` does; then a file
        that was there keeps its content."""
        ...

    def stop(self) -> None:
        """Kill every process in the sandbox; its files stay readable until `close`. Idempotent."""
        ...

    def usage(self) -> ResourceUse:
        """What the sandbox used until `stop`; before it, without what only the end shows."""
        ...

    def export(self) -> Digest:
        """Store the working directory as a tree (links as links, special files as `special`) and return its digest."""
        ...

    def start(self) -> None:
        """Start the session's shell now rather than at the first command. Raises SandboxLost when it does not start."""
        ...

    def snapshot(self) -> Snapshot:
        """The present state as a value; the processes go on. Raises SandboxError."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Kill every process and go back to `snapshot`, of this sandbox or another of the same environment.

        The new working directory is compared with the tree's digest. What a new shell cannot take over of the session's
        state is said in the next command's output. Raises SandboxError.
        """
        ...

    def fork(self, count: int) -> list[Sandbox]:
        """`count` sandboxes beside this one that begin in its present state, each to be closed by the caller.

        Raises SandboxError; then none is left open.
        """
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

    def open(
        self, spec: EnvironmentSpec, blobs: BlobStore, mounts: tuple[Mount, ...] = (), *, snapshot: Snapshot | None = None
    ) -> Sandbox:
        """A fresh sandbox with `spec.files` in the working directory and `spec.mounts + mounts` read-only.

        `mounts` are the harness's: what it gives a verifier to look at, in a sandbox where no agent acts. Only a sandbox with
        such mounts can watch files (inotify): all sandboxes of a machine have few watchers between them.

        With `snapshot`, one that begins in that state instead, checked as `restore` does. Raises SandboxError when it cannot
        be made.
        """
        ...

    def capabilities(self) -> list[Capability]:
        """What holds on this machine, for `factory doctor` and for the record of each run."""
        ...

    def close(self) -> None:
        """Release what the back end itself holds."""
        ...
