"""A frozen clock: a small shared library, named in `/etc/ld.so.preload`, that answers one instant.

The dynamic loader of glibc puts it before the C library in every program, whatever the program's variables are, so an
agent cannot take it off. Wall clocks stand still; every other clock goes on, so that sleeps and timeouts work. What that
covers, and what not, is a table of docs/decisions/0002-sandboxes.md.
"""

from __future__ import annotations

from datetime import UTC, datetime

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec
from sandboxes.preload import MACHINES, frozen_library

PREFIX = "frozen:"
FOLDER = "/opt/clock"
"""Where the library is mounted."""
PRELOAD_NAME = "ld.so.preload"
PRELOAD = f"/etc/{PRELOAD_NAME}"
"""The loader's list of libraries that come first."""

_LIBRARY = "frozen.so"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def frozen_ns(clock: str) -> int | None:
    """Nanoseconds since 1970 at which a clock policy stands still, to the microsecond; None for `real`.

    Raises SandboxError for what is neither `real` nor `frozen:` and an instant since 1970 with its offset from UTC.
    """
    if clock == "real":
        return None
    try:
        instant = datetime.fromisoformat(clock.removeprefix(PREFIX))
    except ValueError:
        instant = datetime.min
    if not clock.startswith(PREFIX) or instant.tzinfo is None or instant < _EPOCH:
        raise SandboxError(f"clock {clock!r} is not offered: only real, or frozen: and an instant as 2026-01-01T00:00:00Z")
    passed = instant - _EPOCH
    return ((passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds) * 1000


def clock_tree(spec: EnvironmentSpec, blobs: BlobStore, machine: str) -> Digest | None:
    """The tree that a sandbox of `spec` needs at `FOLDER`: the library, and the file to bind or link at `PRELOAD`.

    None for a real clock. Raises SandboxError for a policy that is not offered, or not on `machine`.
    """
    instant = frozen_ns(spec.clock)
    if instant is None:
        return None
    if machine not in MACHINES:
        raise SandboxError(f"clock {spec.clock!r} is not offered on {machine}: only on {', '.join(MACHINES)}")
    files: dict[str, bytes | str] = {_LIBRARY: frozen_library(instant), PRELOAD_NAME: f"{FOLDER}/{_LIBRARY}\n"}
    return FileTree.of(blobs, files).save(blobs)


def clock_check(spec: EnvironmentSpec) -> str:
    """bash text that says so and fails where the clock does not stand as `spec` wants it (another libc than glibc)."""
    instant = frozen_ns(spec.clock)
    if instant is None:
        return ":"
    return f'{{ [ "$EPOCHSECONDS" = {instant // 10**9} ] || {{ echo "the frozen clock does not hold here"; false; }}; }}'
