"""One sandbox: a box of the namespace helper, a shell in it, and processes beside the shell."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError, SandboxLost
from factory.core.files import FileTree
from factory.core.outcome import ResourceUse
from factory.core.task import EnvironmentSpec
from sandboxes.bubblewrap.client import HelperClient
from sandboxes.bubblewrap.differences import Difference, Differences
from sandboxes.bubblewrap.image import BubblewrapImage
from sandboxes.bubblewrap.layout import LAYERS, ROOT
from sandboxes.bubblewrap.process import Collector, Pipes
from sandboxes.bubblewrap.session import Hands, Session
from sandboxes.contract import WORKSPACE, CommandResult, ProcessResult, Sandbox, Snapshot
from sandboxes.export import entered, scan
from sandboxes.faults import machine_faults
from sandboxes.files import FILE_S, read_argv, read_result, write_argv, write_result
from sandboxes.folders import load_tree
from sandboxes.grace import Look
from sandboxes.layers import LayerCache, Lease
from sandboxes.meter import Meter
from sandboxes.shell import ENTER, SHELL, limit_script, opening_script
from sandboxes.snapshots import SCRATCH, Shell, check_tree, scratch_digest, siblings
from sandboxes.spec import HOME, USER, memory_of_all, shell_environment

INODE_BYTES = 4096
"""One file or folder is allowed for every so many bytes of the disk limit."""

_NAMESPACES = (
    "--unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try "
    f"--uid {USER} --gid {USER} --hostname sandbox --cap-drop ALL --die-with-parent --new-session"
).split()
_ROOT = f"--dev-bind {ROOT} / --proc /proc --chdir / --".split()
FOLDERS = (("workspace", WORKSPACE), ("tmp", "/tmp"), ("home", HOME), ("shm", "/dev/shm"))
"""Folders of a box and where the sandbox has them, writable."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """What a back end lends its sandboxes."""

    helper: HelperClient
    layers: LayerCache
    differences: Differences
    lease: Lease
    """The layers of the task that the sandbox uses, by their names: start, mounts, policies. It closes it."""
    fork: Callable[[Snapshot], Sandbox]
    """Opens a sandbox of the same environment in another state."""


class BubblewrapSandbox:
    """See `sandboxes.contract.Sandbox`. The folders `/workspace`, `/tmp`, the home and `/dev/shm` share the disk limit."""

    def __init__(
        self,
        place: Place,
        image: BubblewrapImage,
        spec: EnvironmentSpec,
        blobs: BlobStore,
        mounts: list[tuple[str, str]],
        snapshot: Snapshot | None,
        *,
        watches: bool,
    ) -> None:
        """`mounts` are paths inside and names of layers; `watches` says whether processes may watch files."""
        self.image = image.resolved
        self._place, self._helper, self._spec, self._blobs = place, place.helper, spec, blobs
        self._environment = shell_environment(spec, image.environment)
        self._mounts, self._watches = mounts, watches
        self._session: Session | None = None
        self._meter = Meter()
        self._shell = Shell(blobs, self._new_session, [*self._environment, "PWD", "OLDPWD", "SHLVL"])
        self._closed = self._stopped = False
        self._box = self._folder = -1
        self._differences: list[Difference] = []
        try:
            self._begin(snapshot or Snapshot(tree=spec.files), checked=snapshot is not None)
        except BaseException:
            self.close()
            raise

    def _begin(self, snapshot: Snapshot, *, checked: bool) -> None:
        self._shell.begin(snapshot)
        self._make_box(snapshot)
        if checked:
            check_tree(self._blobs, self.export(), snapshot.tree)

    @machine_faults(OSError)
    def _make_box(self, snapshot: Snapshot) -> None:
        start = self._spec.files
        layers: list[str] = []
        self._tree, self._base = snapshot.tree, self._place.layers.tree(self._blobs, snapshot.tree)
        if self._place.layers.tree(self._blobs, start):
            layers.append(start)
        if snapshot.tree != start:
            layers.insert(0, self._take(start, snapshot.tree))
        taken = sum(difference.size for difference in self._differences)
        scratch = None if snapshot.scratch is None else self._take(FileTree().save(self._blobs), snapshot.scratch)
        limits = self._spec.limits
        reply, (self._folder,) = self._helper.call(
            "open",
            layers=[f"{LAYERS}/{layer}" for layer in layers],
            mounts=self._mounts,
            scratch=scratch and f"{LAYERS}/{scratch}",
            disk=limits.disk_bytes,
            taken=taken,
            inodes=limits.disk_bytes // INODE_BYTES + 64,
            memory=memory_of_all(limits),
            watches=self._watches,
        )
        self._box, self.shares_layer = reply["box"], reply["shared"]
        self._disk = limits.disk_bytes - taken if self.shares_layer else limits.disk_bytes

    def _take(self, base: Digest, tree: Digest) -> str:
        """Name of the layer between two trees, in use from now on."""
        self._differences.append(self._place.differences.take(self._blobs, base, tree))
        return self._differences[-1].name

    @machine_faults(OSError)
    def run(self, command: str, *, timeout_s: float, output_bytes: int) -> CommandResult:
        self._check_running()
        return self._meter.command(self._shell.run(command, timeout_s, output_bytes))

    @machine_faults(OSError)
    def start(self) -> None:
        self._check_running()
        self._shell.start()

    def _new_session(self) -> Session:
        self._session = Session(
            Hands(spawn=self._spawn_shell, interrupt=self._interrupt, end=self._end),
            opening_script(limit_script(self._spec, bash=True, processes=True)),
        )
        return self._session

    def _spawn_shell(self, descriptors: tuple[int, ...]) -> int:
        return self._spawn(SHELL, descriptors)

    def _spawn(self, argv: list[str], descriptors: tuple[int, ...]) -> int:
        words = [*_NAMESPACES, *_ROOT, *argv]
        asked = {"box": self._box, "env": self._environment, "cores": self._spec.cores}
        reply, _ = self._helper.call("spawn", descriptors, words=words, **asked)
        job: int = reply["job"]
        return job

    def _interrupt(self, job: int, since: int) -> Look | None:
        seen, _ = self._helper.call("interrupt", job=job, since=since)
        return Look(**seen) if seen else None

    def _end(self, job: int) -> None:
        self._helper.call("end", job=job)

    @machine_faults(OSError)
    def process(self, argv: list[str], *, stdin: bytes, timeout_s: float, output_bytes: int) -> ProcessResult:
        self._check_running()
        with Pipes() as pipes:
            limits = limit_script(self._spec, bash=False, processes=True)
            script = f'{ENTER} && {limits} && printf s >&3 && exec "$@" 3>&-'
            job = self._spawn(["/bin/sh", "-c", script, "sh", *argv], pipes.theirs)
            pipes.close_theirs()
            return self._meter.process(Collector(pipes, stdin, output_bytes).collect(timeout_s, lambda: self._end(job)))

    def read_file(self, path: str, limit: int) -> bytes:
        result = self.process(read_argv(path, limit), stdin=b"", timeout_s=FILE_S, output_bytes=limit + 1)
        return read_result(result, path)

    def write_file(self, path: str, data: bytes) -> None:
        result = self.process(write_argv(path), stdin=data, timeout_s=FILE_S, output_bytes=1024)
        write_result(result, path)

    def stop(self) -> None:
        if not self._stopped and not self._closed:
            self._measure()
            self._halt()

    def _halt(self) -> None:
        self._stopped = True
        if self._session is not None:
            self._session.close()

    def _measure(self) -> None:
        seen, _ = self._helper.call("usage", box=self._box)
        room = os.fstatvfs(self._folder)
        self._meter.see(**seen, beside=False, disk=(room.f_blocks - room.f_bfree) * room.f_frsize)

    def usage(self) -> ResourceUse:
        return self._meter.use()

    @machine_faults(OSError)
    def export(self) -> Digest:
        if self._closed:
            raise SandboxLost("the sandbox is closed")
        with entered(self._folder, "workspace") as workspace:
            if not self.shares_layer:
                return scan(self._blobs, workspace, limit_bytes=self._disk).save(self._blobs)
            with entered(self._folder, "upper") as upper:
                if self._untouched(workspace, upper):
                    return self._tree
                tree = scan(self._blobs, workspace, base=self._base, changed=upper, limit_bytes=self._disk)
                return tree.save(self._blobs)

    def _untouched(self, workspace: int, upper: int) -> bool:
        """Whether the overlay is as it was made, over a tree that is as an export would name it."""
        return (
            not os.listdir(upper)
            and set(os.listdir(workspace)) == {path.partition("/")[0] for path in self._base}
            and self._place.layers.is_canonical(self._blobs, self._tree)
        )

    @machine_faults(OSError)
    def snapshot(self) -> Snapshot:
        self._check_running()
        session, lost = self._shell.told()
        scratch = {}
        for name in SCRATCH:
            with entered(self._folder, name) as folder:
                scratch[name] = scan(self._blobs, folder, limit_bytes=self._disk)
        scratch_tree = scratch_digest(self._blobs, scratch)
        return Snapshot(tree=self.export(), scratch=scratch_tree, session=session, session_lost=lost)

    def restore(self, snapshot: Snapshot) -> None:
        self._check_running()
        load_tree(self._blobs, snapshot.tree)
        if self._session is not None:
            self._session.close()
        self._drop_box()
        self._begin(snapshot, checked=True)

    def fork(self, count: int) -> list[Sandbox]:
        return siblings(self._place.fork, self.snapshot(), count)

    def _drop_box(self) -> None:
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1
        if self._box >= 0:
            box, self._box = self._box, -1
            try:
                self._helper.call("close", box=box)
            finally:
                while self._differences:
                    self._place.differences.give_back(self._differences.pop())

    def close(self) -> None:
        if self._closed:
            return
        try:
            with contextlib.suppress(SandboxLost):
                self._halt()
        finally:
            self._closed = True
            with contextlib.suppress(SandboxError):
                self._drop_box()
            self._place.lease.close()

    def _check_running(self) -> None:
        if self._closed or self._stopped:
            raise SandboxLost("the sandbox was stopped")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
