"""The system call filter of a sandbox, as a classic BPF program for `bwrap --seccomp`.

What `sandboxes.syscalls` refuses ends with EPERM, what is to seem absent with ENOSYS.
"""

from __future__ import annotations

import errno
import os
import struct

from sandboxes.syscalls import ABSENT, ANONYMOUS, FAMILIES, LEASE, NEW_NAMESPACES, NOTIFY, REFUSED, SHARED, WATCHES

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = tuple(_AUDIT_ARCH)
"""Machines whose system call numbers are known here."""

_CLONE = (56, 220)
_SOCKET = (41, 198)
_FCNTL = (72, 25)
_MMAP = (9, 222)
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def program(machine: str | None = None, *, watches: bool = False) -> bytes:
    """The filter for `machine` (this one by default); `watches` allows to watch files.

    Raises ValueError for a machine whose numbers are not known.
    """
    machine = machine or os.uname().machine
    if machine not in _AUDIT_ARCH:
        raise ValueError(f"no system call numbers for {machine!r}")
    column = list(_AUDIT_ARCH).index(machine)
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        _refuse(errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        _refuse(errno.ENOSYS),
    ]
    absent = ABSENT if watches else ABSENT | WATCHES
    for table, number in ((REFUSED, errno.EPERM), (absent, errno.ENOSYS)):
        for numbers in table.values():
            if (call := numbers[column]) is not None:
                code += [(_EQUAL, 0, 1, call), _refuse(number)]
    code += _on(_CLONE[column], 0, [(_ANY_BIT, 0, 1, NEW_NAMESPACES), _refuse(errno.EPERM)])
    code += _on(_FCNTL[column], 1, [(_EQUAL, 1, 0, LEASE), (_EQUAL, 0, 1, NOTIFY), _refuse(errno.EPERM)])
    code += _on(_MMAP[column], 3, [(_ANY_BIT, 0, 2, SHARED), (_ANY_BIT, 0, 1, ANONYMOUS), _refuse(errno.EPERM)])
    known = [(_EQUAL, len(FAMILIES) - place, 0, family) for place, family in enumerate(FAMILIES)]
    code += _on(_SOCKET[column], 0, [*known, _refuse(errno.EAFNOSUPPORT)])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _on(call: int, argument: int, test: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Let `test` decide on `call` by the low half of an argument, which is all that the kernel looks at; what it passes over
    is allowed."""
    block = [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument), *test, (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(block), call), *block]


def _refuse(number: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERRNO | number)
