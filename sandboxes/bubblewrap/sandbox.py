"""One sandbox: a box of the namespace helper, a shell in it, and processes beside the shell."""

from __future__ import annotations

import contextlib
import os
from types import TracebackType
from typing import Self

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError, SandboxLost
from factory.core.task import EnvironmentSpec
from sandboxes.bubblewrap.client import HelperClient
from sandboxes.bubblewrap.image import BubblewrapImage
from sandboxes.bubblewrap.process import Collector, Pipes
from sandboxes.bubblewrap.session import Hands, Session
from sandboxes.contract import WORKSPACE, CommandResult, ProcessResult
from sandboxes.export import scan
from sandboxes.faults import machine_faults
from sandboxes.files import read_argv, read_result, write_argv, write_result
from sandboxes.layers import LayerCache
from sandboxes.shell import SHELL, limit_script, opening_script
from sandboxes.spec import HOME, USER, shell_environment

INODE_BYTES = 4096
"""One file or folder is allowed for every so many bytes of the disk limit."""

_NAMESPACES = (
    "--unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try --disable-userns "
    f"--uid {USER} --gid {USER} --hostname sandbox --cap-drop ALL --die-with-parent --new-session"
).split()
_WRITABLE = (
    f"--bind /box/workspace {WORKSPACE} --bind /box/tmp /tmp --bind /box/home {HOME} "
    "--proc /proc --dev /dev --bind /box/shm /dev/shm"
).split()
_SEALED = f"--remount-ro /dev --remount-ro / --chdir {WORKSPACE} --".split()


class BubblewrapSandbox:
    """See `sandboxes.contract.Sandbox`. The folders `/workspace`, `/tmp`, the home and `/dev/shm` share the disk limit."""

    def __init__(
        self,
        helper: HelperClient,
        image: BubblewrapImage,
        spec: EnvironmentSpec,
        blobs: BlobStore,
        layers: LayerCache,
        mounts: list[tuple[str, str]],
    ) -> None:
        self.image = image.resolved
        self._helper, self._spec, self._blobs, self._layers = helper, spec, blobs, layers
        self._environment = shell_environment(spec, image.environment)
        binds = [part for path, layer in mounts for part in ("--ro-bind", f"/layers/{layer}", path)]
        self._arguments = [*_NAMESPACES, *image.arguments, *_WRITABLE, *binds, *_SEALED]
        self._session: Session | None = None
        self._closed = self._stopped = False
        self._box = -1
        self._folders: list[int] = []
        self._make_box(spec.files)

    @machine_faults(OSError)
    def _make_box(self, tree: Digest) -> None:
        limits = self._spec.limits
        self._base = self._layers.tree(self._blobs, tree)
        self._layers.path(self._blobs, tree)
        reply, self._folders = self._helper.call(
            "open",
            layer=f"/layers/{tree}" if self._base else None,
            disk=limits.disk_bytes,
            inodes=limits.disk_bytes // INODE_BYTES + 64,
            memory=limits.memory_bytes,
        )
        self._box = reply["box"]

    @property
    def shares_layer(self) -> bool:
        """Whether the start is an overlay over its layer (else it was copied, or is empty)."""
        return len(self._folders) == 2

    @machine_faults(OSError)
    def run(self, command: str, *, timeout_s: float, output_bytes: int) -> CommandResult:
        self._check_running()
        if "\0" in command:
            return CommandResult(exit_code=2, output=b"the command holds a NUL character\n"[:output_bytes])
        if self._session is None or self._session.closed:
            self._session = Session(
                Hands(spawn=self._spawn_shell, interrupt=self._interrupt, end=self._end),
                opening_script(limit_script(self._spec, bash=True, processes=True)),
            )
        return self._session.run(command.encode(errors="surrogatepass"), timeout_s, output_bytes)

    def _spawn_shell(self, descriptors: tuple[int, ...]) -> int:
        return self._spawn(SHELL, descriptors)

    def _spawn(self, argv: list[str], descriptors: tuple[int, ...]) -> int:
        reply, _ = self._helper.call("spawn", descriptors, box=self._box, args=[*self._arguments, *argv], env=self._environment)
        job: int = reply["job"]
        return job

    def _interrupt(self, job: int, since: int) -> None:
        self._helper.call("interrupt", job=job, since=since)

    def _end(self, job: int) -> None:
        self._helper.call("end", job=job)

    @machine_faults(OSError)
    def process(self, argv: list[str], *, stdin: bytes, timeout_s: float, output_bytes: int) -> ProcessResult:
        self._check_running()
        with Pipes() as pipes:
            script = limit_script(self._spec, bash=False, processes=True) + ' && printf s >&3 && exec "$@" 3>&-'
            job = self._spawn(["/bin/sh", "-c", script, "sh", *argv], pipes.theirs)
            pipes.close_theirs()
            return Collector(pipes, stdin, output_bytes).collect(timeout_s, lambda: self._end(job))

    def read_file(self, path: str, limit: int) -> bytes:
        result = self.process(read_argv(path, limit), stdin=b"", timeout_s=20, output_bytes=limit + 1)
        return read_result(result, path)

    def write_file(self, path: str, data: bytes) -> None:
        result = self.process(write_argv(path), stdin=data, timeout_s=20, output_bytes=1024)
        write_result(result, path)

    def stop(self) -> None:
        if not self._stopped and not self._closed:
            self._stopped = True
            if self._session is not None:
                self._session.close()

    def export(self) -> Digest:
        return self._scan()

    def snapshot(self) -> Digest:
        self._check_running()
        return self._scan()

    @machine_faults(OSError)
    def _scan(self) -> Digest:
        if self._closed:
            raise SandboxLost("the sandbox is closed")
        workspace, *changed = self._folders
        tree = scan(
            self._blobs,
            workspace,
            base=self._base if changed else None,
            changed=changed[0] if changed else None,
            limit_bytes=self._spec.limits.disk_bytes,
        )
        return tree.save(self._blobs)

    def restore(self, tree: Digest) -> None:
        self._check_running()
        self._layers.path(self._blobs, tree)
        if self._session is not None:
            self._session.close()
            self._session = None
        self._drop_box()
        self._make_box(tree)

    def _drop_box(self) -> None:
        for descriptor in self._folders:
            os.close(descriptor)
        self._folders = []
        if self._box >= 0:
            box, self._box = self._box, -1
            self._helper.call("close", box=box)

    def close(self) -> None:
        if self._closed:
            return
        try:
            with contextlib.suppress(SandboxLost):
                self.stop()
        finally:
            self._closed = True
            with contextlib.suppress(SandboxError):
                self._drop_box()

    def _check_running(self) -> None:
        if self._closed or self._stopped:
            raise SandboxLost("the sandbox was stopped")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
