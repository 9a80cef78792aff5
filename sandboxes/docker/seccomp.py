"""The system call filter of a container: an allow list without anything that the other back end's filter refuses.

The engine's own list differs with its version: up to 24 it allows io_uring, by which files and sockets are used past the
filter.
"""

from __future__ import annotations

import errno
import json
from typing import Any

from sandboxes.syscalls import ABSENT, ANONYMOUS, FAMILIES, NEW_NAMESPACES, SHARED, WATCHES

_ALLOWED = """
    accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_getres clock_gettime
    clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl
    epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64
    fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fdatasync fgetxattr flistxattr flock fork
    fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat
    get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer
    getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid
    getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch
    inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioctl ioprio_get ioprio_set kill
    landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listxattr
    llistxattr lremovexattr lseek lsetxattr lstat madvise membarrier mincore mkdir mkdirat mknod mknodat mlock mlock2
    mlockall mprotect mq_getsetattr mq_notify mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl
    msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause pidfd_open
    pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64
    pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg
    remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending
    rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
    sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
    sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semop
    semtimedop sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid
    setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid
    setxattr shmat shmctl shmdt shutdown sigaltstack signalfd signalfd4 socketpair splice stat statfs statx symlink
    symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun
    timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink
    unlinkat utime utimensat utimes vfork vmsplice wait4 waitid write writev
"""


_OTHER_COMMANDS = ((0x400, 0), (0x1, 0x1), (0x4, 0x4), (0x8, 0x8))
"""Bits of an `fcntl` command, and their values, by which it is neither LEASE nor NOTIFY: rules can only allow."""


def profile(*, watches: bool = False) -> str:
    """The profile as the engine's `seccomp=` option takes it; `watches` allows to watch files. What it does not name ends
    with EPERM."""
    rules = [_allow(*_ALLOWED.split(), *(WATCHES if watches else ()))]
    rules.append(_masked("clone", 0, NEW_NAMESPACES, 0))
    rules += [_allow("socket", args=[{"index": 0, "value": family, "op": "SCMP_CMP_EQ"}]) for family in FAMILIES]
    rules += [_masked("fcntl", 1, bits, value) for bits, value in _OTHER_COMMANDS]
    rules += [_masked("mmap", 3, flag, 0) for flag in (SHARED, ANONYMOUS)]
    rules.append(
        {"names": sorted(ABSENT if watches else ABSENT | WATCHES), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS}
    )
    return json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules})


def _allow(*names: str, args: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ALLOW", "args": args or []}


def _masked(name: str, argument: int, bits: int, value: int) -> dict[str, Any]:
    """Allow a call when `bits` of an argument have this value."""
    return _allow(name, args=[{"index": argument, "value": bits, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}])
