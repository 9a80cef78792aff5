"""Keeps graded code off its graders: a system call filter for one process and everything that it starts.

Processes of one user may signal each other, lower each other's limits and slow each other down. Graded code that killed
the process which grades it would not be scored but masked, which a policy can learn to prefer. The filter refuses
every call that names one of the graders, the calls that have the kernel send signals for a descriptor, and those that watch
files: a user has few of these watchers, and the graders of all sandboxes need one each.
"""

import ctypes
import errno
import os
import struct

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# fmt: off
_NAMES_PROCESS = {  # call: (number on x86_64, number on aarch64, which argument holds the process)
    "kill": (62, 129, 0), "tkill": (200, 130, 0), "tgkill": (234, 131, 0), "rt_sigqueueinfo": (129, 138, 0),
    "rt_tgsigqueueinfo": (297, 240, 0), "pidfd_open": (434, 434, 0), "prlimit64": (302, 261, 0), "ptrace": (101, 117, 1),
    "process_vm_readv": (310, 270, 0), "process_vm_writev": (311, 271, 0), "sched_setaffinity": (203, 122, 0),
    "sched_setscheduler": (144, 119, 0), "sched_setparam": (142, 118, 0), "sched_setattr": (314, 274, 0),
    "setpriority": (141, 140, 1), "ioprio_set": (251, 30, 1), "migrate_pages": (256, 238, 0), "move_pages": (279, 239, 0),
}
_OWNS_SIGNALS = {  # call: (number on x86_64, number on aarch64, values of the second argument)
    "fcntl": (72, 25, (8, 15)),  # F_SETOWN, F_SETOWN_EX
    "ioctl": (16, 29, (0x8901, 0x8902)),  # FIOSETOWN, SIOCSPGRP
}
_WATCHES = {"inotify_init": (253, None), "inotify_init1": (294, 26)}  # their number is the user's, who grades beside
# fmt: on
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def graders():
    """Values of a process argument that reach this process or one above it: its id, its group's, and "all"."""
    pids = [os.getpid()]
    while (parent := _parent(pids[-1])) > 0:
        pids.append(parent)
    groups = [os.getpgid(pid) for pid in pids]
    return sorted({*pids, -1, *(-group for group in groups if group > 0)})


def keep_off(values):
    """Refuse, from now on and for all children, every call that names one of `values`. Raises OSError."""
    code = program(values, os.uname().machine)
    libc = ctypes.CDLL(None, use_errno=True)
    filled = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filled), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the system call filter of the tests cannot be set")


def program(values, machine):
    """The filter as classic BPF. Raises OSError for a machine whose system calls are not known."""
    if machine not in _AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"no system call numbers for {machine!r}")
    column = list(_AUDIT_ARCH).index(machine)
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for *numbers, argument in _NAMES_PROCESS.values():
        code += _unless(numbers[column], argument, [value & 0xFFFFFFFF for value in values])
    for *numbers, commands in _OWNS_SIGNALS.values():
        code += _unless(numbers[column], 1, commands)
    for watch in _WATCHES.values():
        if (number := watch[column]) is not None:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _unless(call, argument, values):
    """Refuse `call` when the low half of its argument is among `values`."""
    block = [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument)]
    for value in values:
        block += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    block.append((_RETURN, 0, 0, _ALLOW))
    return [(_EQUAL, 0, len(block), call), *block]


def _parent(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
