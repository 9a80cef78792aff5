"""What both back ends do with snapshots: the shell's state in and out of the blob store, checks, siblings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import NotFound, SandboxError
from factory.core.files import FileTree
from sandboxes.contract import CommandResult, Sandbox, Snapshot
from sandboxes.export import canonical
from sandboxes.folders import load_tree
from sandboxes.state import CARRY_S, NOT_CARRIED, NOT_TOLD, ShellState, carry_command

SCRATCH = ("tmp", "home")
"""Folders of a scratch tree: `/tmp` and the home of the user inside."""

SAID_BYTES = 1000
"""Output of a shell that begins, for the case that it does not, bytes."""

S = TypeVar("S", bound=Sandbox)


class LiveShell(Protocol):
    """A session of either back end."""

    closed: bool

    def run(self, command: bytes, timeout_s: float, output_bytes: int) -> CommandResult:
        """Run one command in the shell."""
        ...

    def state(self) -> ShellState | None:
        """What the shell tells of itself; None when it does not."""
        ...


class Shell:
    """The shell of one sandbox across restores: made when it is needed, told the state that it takes over."""

    def __init__(self, blobs: BlobStore, make: Callable[[], LiveShell], inherited: list[str]) -> None:
        """`inherited` names the variables that a new shell is started with."""
        self._blobs, self._make, self._inherited = blobs, make, inherited
        self._live: LiveShell | None = None
        self._state: ShellState | None = None
        self._note = b""

    def begin(self, snapshot: Snapshot) -> None:
        """Let the next shell begin as `snapshot` says. Raises SandboxError when its state cannot be had."""
        self._live, self._state, self._note = None, None, NOT_TOLD if snapshot.session_lost else b""
        if snapshot.session is not None:
            try:
                self._state = ShellState.from_bytes(self._blobs.get(snapshot.session))
            except NotFound as error:
                raise SandboxError(f"the shell state {snapshot.session} is not in the blob store") from error

    def live(self) -> LiveShell:
        """The running shell, made now when there is none. Raises SandboxLost when it does not start."""
        if self._live is None or self._live.closed:
            self._live = self._make()
            state, self._state = self._state, None
            if state is not None:
                self._carry(self._live, state)
        return self._live

    def start(self) -> None:
        """Make the shell now, when there is none, and wait until it answers. Raises SandboxLost when it does not start."""
        if self._live is None or self._live.closed:
            self.live().run(b":", CARRY_S, SAID_BYTES)

    def _carry(self, live: LiveShell, state: ShellState) -> None:
        result = live.run(carry_command(state, self._inherited), CARRY_S, SAID_BYTES)
        if live.closed:
            self._live = self._make()
        if live.closed or result.exit_code != 0:
            reason = f"its time of {CARRY_S:.0f} s passed" if result.timed_out else f"status {result.exit_code}"
            self._note = NOT_CARRIED % reason.encode()

    def run(self, command: str, timeout_s: float, output_bytes: int) -> CommandResult:
        """Run one command, after what is to be said of the shell's beginning."""
        if "\0" in command:
            return CommandResult(exit_code=2, output=b"the command holds a NUL character\n"[:output_bytes])
        live = self.live()
        note, self._note = self._note[:output_bytes], b""
        result = live.run(command.encode(errors="surrogatepass"), timeout_s, output_bytes - len(note))
        return replace(result, output=note + result.output) if note else result

    def told(self) -> tuple[Digest | None, bool]:
        """Digest of the state that the shell told (None without one), and whether it failed to tell. It goes on, unless it
        ended or hung over the question."""
        if self._live is None or self._live.closed:
            return (None if self._state is None else self._blobs.put(self._state.to_bytes())), bool(self._note)
        state = self._live.state()
        if self._live.closed:
            self._note = NOT_TOLD
        return (None if state is None else self._blobs.put(state.to_bytes())), state is None


def check_tree(blobs: BlobStore, found: Digest, wanted: Digest) -> None:
    """Raise SandboxError unless a new working directory's tree `found` is the tree `wanted`."""
    if found != wanted and found != canonical(load_tree(blobs, wanted)).digest:
        raise SandboxError(f"the snapshot gave tree {found}, not {wanted}")


def scratch_digest(blobs: BlobStore, trees: dict[str, FileTree]) -> Digest | None:
    """Store the trees of the folders of `SCRATCH` as one; None when all are empty."""
    entries = {f"{name}/{path}": entry for name, tree in trees.items() for path, entry in tree.items()}
    return FileTree(entries).save(blobs) if entries else None


def siblings(open_one: Callable[[Snapshot], S], snapshot: Snapshot, count: int) -> list[S]:
    """`count` sandboxes in one state; none when one of them cannot be opened."""
    opened: list[S] = []
    try:
        for _ in range(count):
            opened.append(open_one(snapshot))
    except BaseException:
        for sandbox in opened:
            sandbox.close()
        raise
    return opened
