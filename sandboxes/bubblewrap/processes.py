"""Process trees from `/proc`. Imported by the namespace helper: standard library only."""

from __future__ import annotations

import contextlib
import os
import signal

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


def descendants(pid: int, deep: bool = True) -> list[int]:
    """The children of `pid` (all its threads'), and theirs when `deep`. What ended meanwhile is left out."""
    found = _children(pid)
    if deep:
        for child in found:  # the list grows meanwhile
            found += _children(child)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as stream:
                found += map(int, stream.read().split())
        except OSError:
            continue
    return found


def start_ticks(pid: int) -> int | None:
    """When `pid` started, in clock ticks since boot; None when it is gone."""
    return _stat(pid, 19)


def parent(pid: int) -> int | None:
    """The process id of `pid`'s parent; None when it is gone, and waited for."""
    return _stat(pid, 1)


def _stat(pid: int, field: int) -> int | None:
    """A number of `/proc/PID/stat`, counted from the state (0) on."""
    fields = _fields(pid)
    return None if fields is None else int(fields[field])


def _fields(pid: int) -> list[bytes] | None:
    """What `/proc/PID/stat` tells from the state on; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()
    except OSError:
        return None


def private_bytes(pid: int) -> int:
    """Resident memory of `pid` that no file backs, bytes; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:
            _, resident, shared, *_ = map(int, stream.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * _PAGE


def cpu_seconds(pids: list[int]) -> float:
    """Processor time of `pids` and of what they waited for, seconds; what is gone is left out."""
    return sum(sum(map(int, fields[11:15])) for pid in pids if (fields := _fields(pid))) / _TICKS


def interrupt(job: int, since: int) -> dict[str, object]:
    """Tell the shell below `job` to give up its command, and kill what it started at `since` (ticks) or later.

    The reaper and the shell stay. Repeats until no new process appears, ten times at most; returns the fields of a
    `sandboxes.grace.Look`, or none when there is no shell.
    """
    reapers = descendants(job, deep=False)
    shells = [shell for reaper in reapers for shell in descendants(reaper, deep=False)[:1]]
    for shell in shells:
        _signal(shell, signal.SIGUSR1)
    killed: set[int] = set()
    for _ in range(10):
        spared = {*reapers, *shells, *killed}
        fresh = [pid for pid in descendants(job) if pid not in spared and (start_ticks(pid) or 0) >= since]
        if not fresh:
            break
        for pid in fresh:
            _signal(pid, signal.SIGKILL)
        killed.update(fresh)
    dying = sum((_fields(pid) or [b"Z"])[0] not in (b"Z", b"X") for pid in killed)
    for shell in shells:
        if fields := _fields(shell):
            return {"state": fields[0].decode(), "cpu_s": sum(map(int, fields[11:13])) / _TICKS, "dying": dying}
    return {}


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
