"""The roots of sandboxes: laid out once for each set of mounts, then shared read-only, from one runtime.

bubblewrap binds such a root in one step. Were it to lay out the runtime itself, it would read the whole mount table again
for every part, which took a third of the start of a sandbox. Imported by the helper: standard library only.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from sandboxes.bubblewrap import kernel

BOX = "/box"
"""Where a box mounts its tmpfs."""
ROOT = f"{BOX}/root"
"""A sandbox's root, in its box."""
RUNTIME = "/runtime"
"""What all sandboxes share, in the helper's root: read-only, without set-user-id programs and, but for `/dev`, devices."""
PLANS = "/plans"
"""Where the helper's root has the roots that boxes are given."""
MOST_PLANS = 32
"""Roots that are kept; the one longest unused makes room."""
EMPTY = "/empty"
"""An empty folder in the helper's root, bound over what sandboxes are not to see."""
LAYERS = "/layers"
"""Where the helper's root has the layers."""

_DEVICES = {"null": "null", "zero": "full", "full": "full", "random": "random", "urandom": "urandom", "tty": "tty"}
"""Devices inside and out. `full` reads as `zero` does, but cannot be mapped: memory that is shared so no process need show."""
_DEVICE_LINKS = (
    *(("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")),
    *(("core", "/proc/kcore"), ("ptmx", "pts/ptmx")),
)
_SHARED = kernel.MS_BIND | kernel.MS_REC
_SAFE = kernel.MS_NOSUID | kernel.MS_NODEV
_TERMINALS = kernel.MS_NOSUID | kernel.MS_NOEXEC
_OPTIONS = {
    "ro": kernel.MS_RDONLY,
    "nosuid": kernel.MS_NOSUID,
    "nodev": kernel.MS_NODEV,
    "noexec": kernel.MS_NOEXEC,
    "noatime": kernel.MS_NOATIME,
    "nodiratime": kernel.MS_NODIRATIME,
    "relatime": kernel.MS_RELATIME,
}


def prepare(stage: str, runtime: Iterable[Sequence[str]], etc: Iterable[Sequence[str]]) -> None:
    """Build `RUNTIME` below `stage`, the helper's root to be. Raises OSError.

    `runtime` has paths below `stage` and where sandboxes see them, `etc` paths and texts of files.
    """
    for source, target in runtime:
        place = f"{stage}{RUNTIME}{target}"
        os.makedirs(place, exist_ok=True)
        kernel.mount(stage + source, place, None, _SHARED)
    for path, text in etc:
        os.makedirs(os.path.dirname(f"{stage}{RUNTIME}{path}"), exist_ok=True)
        with open(f"{stage}{RUNTIME}{path}", "wb") as stream:
            stream.write(text.encode())
    kernel.mount(f"{stage}{RUNTIME}/etc", f"{stage}{RUNTIME}/etc", None, _SHARED)
    devices = f"{stage}{RUNTIME}/dev"
    for folder in ("pts", "shm"):
        os.makedirs(f"{devices}/{folder}")
    for name, device in _DEVICES.items():
        os.close(os.open(f"{devices}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        kernel.mount(f"{stage}/dev/{device}", f"{devices}/{name}", None, kernel.MS_BIND)
    for name, target in _DEVICE_LINKS:
        os.symlink(target, f"{devices}/{name}")
    kernel.mount(devices, devices, None, _SHARED)
    _restrict(stage)


def _restrict(stage: str) -> None:
    """Every mount of the runtime and of the layers read-only, without set-user-id and devices; a device has to be one."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
        found = {fields[4]: fields[5] for fields in map(str.split, stream)}
    for escaped, options in found.items():
        place = (
            escaped.encode("utf-8", "surrogateescape")
            .decode("unicode_escape")
            .encode("latin-1")
            .decode(errors="surrogateescape")
        )
        inside = place.removeprefix(stage)
        if inside == place or not f"{inside}/".startswith((f"{RUNTIME}/", f"{LAYERS}/")):
            continue
        wanted = kernel.MS_NOSUID if inside.startswith(f"{RUNTIME}/dev/") else kernel.MS_RDONLY | _SAFE
        kept = sum(flag for name, flag in _OPTIONS.items() if name in options.split(",") and not wanted & flag)
        kernel.mount(None, place, None, kernel.MS_REMOUNT | kernel.MS_BIND | kept | wanted)


class Layout:
    """Gives boxes their roots. `config` as in `sandboxes.bubblewrap.client.HelperRoot`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._folders, self._links = config["folders"], config["links"]
        parts = ["/etc", "/dev", *(target for _, target in config["runtime"])]
        self._parts = [part for part in parts if not any(part.startswith(f"{other}/") for other in parts)]
        self._plans: OrderedDict[tuple[tuple[str, bool], ...], str] = OrderedDict()
        self._numbers = itertools.count()

    def plan(self, mounts: Sequence[Sequence[str]]) -> str:
        """The folder of a root with places for `mounts` (paths in the sandbox, names of layers), made in the helper's own
        mount namespace where there is none. Raises OSError."""
        key = tuple((path, os.path.isdir(f"{LAYERS}/{layer}")) for path, layer in mounts)
        if key not in self._plans:
            if len(self._plans) >= MOST_PLANS:
                _forget(self._plans.popitem(last=False)[1])
            self._plans[key] = self._lay(f"{PLANS}/{next(self._numbers)}", key)
        self._plans.move_to_end(key)
        return self._plans[key]

    def _lay(self, root: str, places: Iterable[tuple[str, bool]]) -> str:
        os.mkdir(root)
        kernel.mount(root, root, None, kernel.MS_BIND)  # everything stands on this mount and goes with it
        _place(f"{root}/proc", folder=True)
        for path, target in self._links:
            os.symlink(target, root + path)
        for _, path in self._folders:
            if not path.startswith("/dev/"):
                _place(root + path, folder=True)
        own_etc = any(path.startswith("/etc/") for path, _ in places)
        for part in self._parts:
            if part == "/etc" and own_etc:
                for name in os.listdir(f"{RUNTIME}/etc"):
                    _bind(f"{RUNTIME}/etc/{name}", f"{root}/etc/{name}")
            else:
                _bind(RUNTIME + part, root + part)
        for path, folder in places:
            _place(root + path, folder=folder)
        kernel.mount(None, root, None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _SAFE)
        return root

    def furnish(self, root: str, mounts: Sequence[Sequence[str]]) -> None:
        """Put `root` at `ROOT` in this mount namespace, a box's, with the box's own folders and `mounts`. Raises OSError."""
        os.mkdir(ROOT)
        kernel.mount(root, ROOT, None, _SHARED)
        for name, path in self._folders:
            kernel.mount(f"{BOX}/{name}", ROOT + path, None, kernel.MS_BIND | (kernel.MS_REC if name == "workspace" else 0))
        kernel.mount("devpts", f"{ROOT}/dev/pts", "devpts", _TERMINALS, "newinstance,ptmxmode=0666,mode=620")
        for path, layer in mounts:
            kernel.mount(f"{LAYERS}/{layer}", ROOT + path, None, kernel.MS_BIND)


def _bind(source: str, place: str) -> None:
    """`source`, with the restrictions that it has, at `place`, which is made."""
    _place(place, folder=os.path.isdir(source))
    kernel.mount(source, place, None, _SHARED)


def _place(path: str, *, folder: bool) -> None:
    """Something to mount a folder or a file on."""
    os.makedirs(path if folder else os.path.dirname(path), exist_ok=True)
    if not folder:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))


def _forget(root: str) -> None:
    """Remove a root; boxes that have it keep it."""
    kernel.detach(root)
    shutil.rmtree(root)
