"""The few system calls that Python 3.11 has no name for. Imported by the namespace helper: standard library only."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_NOATIME = 1024
MS_NODIRATIME = 2048
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_RELATIME = 1 << 21
MNT_DETACH = 2

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2). Raises OSError."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _check(result, f"mount {kind or 'bind'} {source} on {target}")


def detach(target: str) -> None:
    """umount2(2), lazily. Raises OSError."""
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def unshare(flags: int) -> None:
    """unshare(2). Raises OSError."""
    _check(_libc.unshare(flags), "unshare")


def enter(namespace: int) -> None:
    """setns(2) into the mount namespace of an open descriptor. Raises OSError."""
    _check(_libc.setns(namespace, CLONE_NEWNS), "setns")


def pivot_root(root: str) -> None:
    """Make `root`, a mount point, the root of this mount namespace, and drop the old one. Raises OSError."""
    os.chdir(root)
    _check(_libc.syscall(_SYS_PIVOT_ROOT[os.uname().machine], b".", b"."), f"pivot_root {root}")
    detach(".")
    os.chdir("/")


def prctl(option: int, value: int) -> None:
    """prctl(2) with one argument. Raises OSError."""
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")
