"""System calls that no sandbox needs, for the filters of both back ends.

Refused: what reaches into other processes, makes namespaces or mounts, or speaks to parts of the kernel that tasks do not
need. Absent: `clone3`, whose flags a filter cannot read, so that callers fall back to `clone`; and memory that no process
shows and no file limit covers. Of a few calls only some arguments are refused.
"""

from __future__ import annotations

# fmt: off
REFUSED = {  # name: (number on x86_64, number on aarch64)
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "setns": (308, 268), "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "sethostname": (170, 161), "setdomainname": (171, 162),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "quotactl": (179, 60), "acct": (163, 89), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "syslog": (103, 116), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "vhangup": (153, 58), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "personality": (135, 92), "lookup_dcookie": (212, 18), "move_pages": (279, 239), "migrate_pages": (256, 238),
    "quotactl_fd": (443, 443), "uselib": (134, None), "ustat": (136, None), "sysfs": (139, None),
}
ABSENT = {
    "clone3": (435, 435), "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180),
}
WATCHES = {"inotify_init": (253, None), "inotify_init1": (294, 26)}
# fmt: on
"""All by name, with their numbers on x86_64 and aarch64."""
# `WATCHES` are absent too, except where a verifier looks: the kernel counts them for all sandboxes of a machine together.
NEW_NAMESPACES = 0x7E020080
"""All CLONE_NEW* flags: time, mount, cgroup, uts, ipc, user, pid, net."""
FAMILIES = (1, 2, 10, 16)
"""Families of sockets that are allowed: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""
LEASE, NOTIFY = 1024, 1026
"""Commands of `fcntl` that are refused: by a lease on a file, which the agent's user owns also where it is mounted read-only,
everybody else who opens it waits; by the other a folder is watched."""
SHARED, ANONYMOUS = 0x01, 0x20
"""Flags of `mmap` that are refused together: what is shared without a file stays in memory although nobody maps it any more,
so that no process shows it."""
