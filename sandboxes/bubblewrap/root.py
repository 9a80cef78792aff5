"""The root that the namespace helper lives in. Imported by the helper: standard library only."""

from __future__ import annotations

import os
import shutil
import stat
from typing import Any

from sandboxes.bubblewrap import kernel
from sandboxes.bubblewrap.layout import BOX, EMPTY, PLANS, prepare

FILTERS = ("/agent.bpf", "/verifier.bpf")
"""The system call filters' programs: without watches of files, and with them."""


def enter_root(config: dict[str, Any]) -> None:
    """Build the root of `config["binds"]` and `["links"]` with the runtime of `["runtime"]` and `["etc"]`, and become its
    only user. Raises OSError."""
    os.umask(0o022)  # the user that is entered passes, whatever the host's umask
    drop = config["drop"]
    if drop is None:
        _own_namespaces(os.getuid(), os.getgid())
    else:
        kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    sources = [os.open(source, os.O_PATH) for source, _ in config["binds"]]
    stage = "/tmp"
    kernel.mount("tmpfs", stage, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=4m")
    for source, (_, target) in zip(sources, config["binds"], strict=True):
        os.makedirs(stage + target, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{source}", stage + target, None, kernel.MS_BIND | kernel.MS_REC)
        os.close(source)
    for folder in ("/tmp", BOX, EMPTY, PLANS):
        os.mkdir(stage + folder)
    os.chmod(stage + PLANS, 0o777)  # the helper is no longer root when it makes them
    for path, target in config["links"]:
        os.symlink(target, stage + path)
    prepare(stage, config["runtime"], config["etc"])
    for path, program in zip(FILTERS, config["filters"], strict=False):
        with open(stage + path, "wb") as stream:
            stream.write(bytes.fromhex(program))
    kernel.pivot_root(stage)
    if drop is not None:
        os.setgroups([])
        os.setresgid(drop, drop, drop)
        os.setresuid(drop, drop, drop)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        _own_namespaces(drop, drop)


def _own_namespaces(user: int, group: int) -> None:
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "wb") as stream:
            stream.write(text.encode())


def copy_layer(source: str, target: str) -> None:
    """Copy a layer over what is there: modes and times too, links as links, sockets (special entries) made anew.

    A character device marks what the layer takes away, as in an overlay.
    """
    with os.scandir(source) as listing:
        for entry in listing:
            status, made = entry.stat(follow_symlinks=False), f"{target}/{entry.name}"
            if not stat.S_ISDIR(status.st_mode) or not _is_folder(made):
                _remove(made)
            if stat.S_ISCHR(status.st_mode):
                continue
            if stat.S_ISDIR(status.st_mode):
                os.makedirs(made, exist_ok=True)
                copy_layer(entry.path, made)
            elif stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(entry.path), made)
            elif stat.S_ISREG(status.st_mode):
                with open(entry.path, "rb") as read, open(made, "wb") as written:
                    os.sendfile(written.fileno(), read.fileno(), 0, max(1, status.st_size))
                os.chmod(made, stat.S_IMODE(status.st_mode))
            else:
                os.mknod(made, status.st_mode)
            os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _remove(path: str) -> None:
    if _is_folder(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
