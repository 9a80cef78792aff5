"""What the live sessions of both back ends share: the shell's script, its frames, and bounded output.

The shell is a bash that reads a script line and then a command from one channel, runs the command with `eval` (so
that directory, variables and functions persist) and writes `NONCE STATUS` on a channel of its own. Each
command has a fresh random nonce, so nothing that was printed or prepared before can end it. Code that runs inside the
shell's own process can spoil its session, never a verdict: grading happens in another sandbox.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from factory.core.task import EnvironmentSpec, Limits

READY = b"ready"
"""The first frame of a session: the sandbox is set up and the shell runs."""
NEW_SHELL = b"[the shell ended (%s); the next command starts a new one in the working directory]\n"
"""Said in the output when variables and functions are lost."""


def limit_script(limits: Limits, umask: int, *, bash: bool) -> str:
    """Shell text that sets the limits of a process and its children: for bash itself, or for whatever `/bin/sh` is.

    bash counts file sizes in KiB, `sh` in 512 bytes; dash names the number of processes `-p`, a bash called sh `-u`.
    """
    blocks = limits.file_bytes // (1024 if bash else 512)
    processes = f"ulimit -u {limits.processes}"
    if not bash:
        processes = f"{{ ulimit -p {limits.processes} 2>/dev/null || {processes}; }}"
    return (
        f"ulimit -c 0 && ulimit -v {limits.memory_bytes // 1024} && ulimit -n {limits.open_files} && "
        f"ulimit -f {blocks} && {processes} && umask {umask:03o}"
    )


def opening_script(spec: EnvironmentSpec) -> bytes:
    """The session's first line. A command interrupted at its limit leaves its loops and lists by the trap."""
    limits = limit_script(spec.limits, spec.umask, bash=True)
    trap = "trap 'break 1000 2>/dev/null' USR1"
    return f"{limits} && shopt -s expand_aliases && {trap} && printf '{READY.decode()}\\0' >&3 || exit 125\n".encode()


def process_argv(argv: list[str], spec: EnvironmentSpec) -> list[str]:
    """`argv` behind a shell that sets the limits, writes `s` to descriptor 3 as a sign of life, and becomes it."""
    script = limit_script(spec.limits, spec.umask, bash=False) + ' && printf s >&3 && exec "$@" 3>&-'
    return ["/bin/sh", "-c", script, "sh", *argv]


def command_script(command: bytes, nonce: bytes) -> bytes:
    """One command as the session reads it: a script line, then the command up to a NUL."""
    return (
        b"IFS= builtin read -r -d '' __c; while :; do eval \"$__c\" </dev/null 3>&-; __s=$?; break; done; "
        b"builtin printf '" + nonce + b' %d\\0\' "$__s" >&3\n' + command + b"\0"
    )


def fresh_nonce() -> bytes:
    """128 random bits as hexadecimal digits."""
    return secrets.token_hex(16).encode()


def parse_status(frame: bytes, nonce: bytes) -> int | None:
    """The exit status in a frame of the status channel; None when it is not the answer to `nonce`."""
    head, _, status = frame.partition(b" ")
    return int(status) if head == nonce and status.isdigit() and len(status) <= 3 else None


@dataclass
class HeadTail:
    """Output bounded to `limit` bytes: its first half and its last half are kept, the rest only counted."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = (self.limit + 1) // 2 - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if data:
            keep = self.limit // 2
            self.tail += data[-keep:] if keep else b""
            if len(self.tail) > keep:
                del self.tail[: len(self.tail) - keep]

    @property
    def kept(self) -> bytes:
        return bytes(self.head + self.tail)

    @property
    def omitted(self) -> int:
        """Bytes cut between head and tail."""
        return self.total - len(self.head) - len(self.tail)
