"""What the live sessions of both back ends share: the shell's script, its frames, and bounded output.

The shell is a bash that reads a script line and then a command from one channel, runs the command with `eval` (so
that directory, variables and functions persist) and writes `NONCE STATUS` on a channel of its own, descriptor 3.
Each command has a fresh random nonce, so nothing that was printed or prepared before can end it. Code that runs
inside the shell's own process can spoil its session, never a verdict: grading happens in another sandbox.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from factory.core.task import EnvironmentSpec
from sandboxes.clock import clock_check
from sandboxes.contract import WORKSPACE
from sandboxes.state import STATE_BYTES, keep_section

READY = b"ready"
"""The first frame of a session: the sandbox is set up and the shell runs."""
NEW_SHELL = b"[the shell ended (%s); the next command starts a new one in the working directory]\n"
"""Said in the output when variables and functions are lost."""
SHELL = ["/bin/bash", "--norc", "--noprofile", "-s"]
"""The session's program: reads no start-up file."""
ENTER = f"{{ cd {WORKSPACE} 2>/dev/null || cd /; }} && unset OLDPWD && export OLDPWD"
"""Shell text that goes to the working directory, or stays at the root where its owner, the agent, closed it: a process
that could not start there would look like a fault of the machine."""


def limit_script(spec: EnvironmentSpec, *, bash: bool, processes: bool) -> str:
    """Shell text that sets the limits of a process and its children: for bash itself, or for whatever `/bin/sh` is.

    bash counts file sizes in KiB, `sh` in 512 bytes; dash names the number of processes `-p`, a bash called sh `-u`.
    `processes` says whether that number is limited so: only where each sandbox has a user namespace.
    """
    limits = spec.limits
    parts = [
        "ulimit -c 0",
        f"ulimit -v {limits.memory_bytes // 1024}",
        f"ulimit -n {limits.open_files}",
        f"ulimit -f {limits.file_bytes // (1024 if bash else 512)}",
        f"ulimit -t {-(-limits.episode_ms // 1000)}",
        f"umask {spec.umask:03o}",
    ]
    if processes:
        named = f"ulimit -u {limits.processes}"
        parts.append(named if bash else f"{{ ulimit -p {limits.processes} 2>/dev/null || {named}; }}")
    if bash:
        parts += ["ulimit -q 0", clock_check(spec)]  # queues of messages are memory that no other limit counts
    return " && ".join(parts)


def opening_script(limits: str) -> bytes:
    """The session's first line. A command interrupted at its limit leaves its loops and lists by the trap."""
    trap = "trap 'break 1000 2>/dev/null' USR1"
    return (
        f"{ENTER} && {limits} && shopt -s expand_aliases && {trap} && printf '{READY.decode()}\\0' >&3 || exit 125\n".encode()
    )


def command_script(command: bytes, nonce: bytes, marker: bytes = b"") -> bytes:
    """One command as the session reads it: a script line, then the command up to a NUL.

    With `marker`, it is printed on descriptor 4 after everything that the command printed there. Tracing (`set -x`) is
    off between commands, so that it shows the agent's own only.
    """
    mark = b"; builtin printf '%s' '" + marker + b"' >&4" if marker else b""
    return (
        b"IFS= builtin read -r -d '' __c; "
        b'while :; do builtin eval "${__x:+set -x;}$__c" </dev/null 3>&- 4>&-; '
        b"{ __s=$?; __x=${-//[^x]/}; set +x; } 2>/dev/null; break; done; { set +x; } 2>/dev/null; "
        b"builtin printf '" + nonce + b' %d\\0\' "$__s" >&3' + mark + b"\n" + command + b"\0"
    )


def fresh_nonce() -> bytes:
    """128 random bits as hexadecimal digits."""
    return secrets.token_hex(16).encode()


def parse_status(frame: bytes, nonce: bytes) -> int | None:
    """The exit status in a frame of the status channel; None when it is not the answer to `nonce`."""
    head, _, status = frame.partition(b" ")
    return int(status) if head == nonce and status.isdigit() and len(status) <= 3 else None


@dataclass
class Frames:
    """The status channel: NUL-ended frames, the first of them `READY`, then one answer to each nonce."""

    LIMIT = 4096

    ready: bool = False
    told: list[bytes] | None = None
    """Where frames before the answer are kept while the shell tells its state; None: they spoil the session."""
    spoilt: bool = False
    """Something wrote what it should not have: the session can no longer be trusted to tell ends."""
    _received: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes, nonce: bytes) -> int | None:
        """Take received bytes; the exit status once the answer to `nonce` is among them."""
        self._received += data
        while b"\0" in self._received and not self.spoilt:
            frame, _, rest = self._received.partition(b"\0")
            self._received = rest
            if not self.ready and frame == READY:
                self.ready = True
                continue
            code = parse_status(bytes(frame), nonce)
            if code is not None:
                return code
            if self.told is None:
                self.spoilt = True
            else:
                keep_section(self.told, bytes(frame))
        if self.told is not None and len(self._received) > STATE_BYTES:
            keep_section(self.told, bytes(self._received))
            self._received.clear()
        self.spoilt = self.spoilt or (self.told is None and len(self._received) > self.LIMIT)
        return None


@dataclass
class HeadTail:
    """Output bounded to `limit` bytes: its first half and its last half are kept, the rest only counted."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
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
        """Head and tail, together at most `limit` bytes."""
        return bytes(self.head + self.tail)

    @property
    def omitted(self) -> int:
        """Bytes cut between head and tail."""
        return self.total - len(self.head) - len(self.tail)
