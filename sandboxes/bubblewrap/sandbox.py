"""One sandbox: a box of the namespace helper, a shell in it, and processes beside the shell."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError, SandboxLost
from factory.core.task import EnvironmentSpec
from sandboxes.bubblewrap.client import HelperClient
from sandboxes.bubblewrap.image import BubblewrapImage
from sandboxes.bubblewrap.session import DEATH_S, Hands, Session
from sandboxes.contract import WORKSPACE, CommandResult, ProcessResult
from sandboxes.export import scan
from sandboxes.faults import machine_faults
from sandboxes.files import read_argv, read_result, write_argv, write_result
from sandboxes.layers import LayerCache
from sandboxes.shell import SHELL, HeadTail, limit_script, opening_script
from sandboxes.spec import HOME, USER, shell_environment

STDERR_BYTES = 4096
"""Tail of a process's error output that is kept, bytes."""
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
        with _Pipes() as pipes:
            script = limit_script(self._spec, bash=False, processes=True) + ' && printf s >&3 && exec "$@" 3>&-'
            job = self._spawn(["/bin/sh", "-c", script, "sh", *argv], pipes.theirs)
            pipes.close_theirs()
            return _Collector(pipes, stdin, output_bytes).collect(timeout_s, lambda: self._end(job))

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


class _Pipes:
    """Standard streams and the status pipe of one process; all closed at the end."""

    def __enter__(self) -> Self:
        child_in, self.stdin = os.pipe2(os.O_CLOEXEC)
        self.stdout, child_out = os.pipe2(os.O_CLOEXEC)
        self.stderr, child_err = os.pipe2(os.O_CLOEXEC)
        self.status, child_status = os.pipe2(os.O_CLOEXEC)
        self.theirs: tuple[int, ...] = (child_in, child_out, child_err, child_status, child_status)
        for descriptor in (self.stdin, self.stdout, self.stderr, self.status):
            os.set_blocking(descriptor, False)
        return self

    def close_theirs(self) -> None:
        for descriptor in set(self.theirs):
            os.close(descriptor)
        self.theirs = ()

    def __exit__(self, *_: object) -> None:
        self.close_theirs()
        for descriptor in (self.stdin, self.stdout, self.stderr, self.status):
            if descriptor >= 0:
                os.close(descriptor)


class _Collector:
    """Feeds a process and collects its output until its whole group is gone."""

    def __init__(self, pipes: _Pipes, stdin: bytes, output_bytes: int) -> None:
        self._pipes, self._stdin, self._room = pipes, memoryview(stdin), output_bytes
        self._stdout = bytearray()
        self._stderr = HeadTail(2 * STDERR_BYTES)
        self._status = bytearray()

    def collect(self, timeout_s: float, end: Callable[[], None]) -> ProcessResult:
        started = time.monotonic()
        deadline, timed_out = started + timeout_s, False
        poll = select.poll()
        for descriptor in (self._pipes.stdout, self._pipes.stderr, self._pipes.status):
            poll.register(descriptor, select.POLLIN)
        poll.register(self._pipes.stdin, select.POLLOUT)
        while not self._status.endswith(b"}"):
            left = deadline - time.monotonic()
            if left <= 0:
                if timed_out:
                    raise SandboxLost("the processes of a sandbox do not die")
                end()
                timed_out, deadline = True, time.monotonic() + DEATH_S
                continue
            self._move(poll, left)
        while self._take(self._pipes.stdout, self._keep) or self._take(self._pipes.stderr, self._stderr.add):
            pass
        return self._result(timed_out, time.monotonic() - started)

    def _move(self, poll: select.poll, left: float) -> None:
        for descriptor, _ in poll.poll(left * 1000):
            if descriptor == self._pipes.stdin:
                if not self._feed():
                    poll.unregister(descriptor)
                    os.close(descriptor)
                    self._pipes.stdin = -1
            elif descriptor == self._pipes.status:
                if not self._take(descriptor, self._status.extend):
                    raise SandboxLost("the namespace helper ended")
            elif not self._take(descriptor, self._keep if descriptor == self._pipes.stdout else self._stderr.add):
                poll.unregister(descriptor)

    def _feed(self) -> bool:
        """Write what the process takes; False when all is written or it takes no more."""
        try:
            self._stdin = self._stdin[os.write(self._pipes.stdin, self._stdin[: 1 << 16]) :] if self._stdin else self._stdin
        except BrokenPipeError:
            return False
        except BlockingIOError:
            return True
        return bool(self._stdin)

    def _take(self, descriptor: int, add: Callable[[bytes], None]) -> bool:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return False
        if data:
            add(data)
        return bool(data)

    def _keep(self, data: bytes) -> None:
        self._stdout += data[: self._room - len(self._stdout)]

    def _result(self, timed_out: bool, wall_s: float) -> ProcessResult:
        started, _, end = bytes(self._status).partition(b"{")
        stderr = self._stderr.kept[-STDERR_BYTES:]
        if started != b"s":
            raise SandboxLost(f"the process did not start: {stderr.decode(errors='replace').strip()}")
        value = json.loads(b"{" + end)
        code = value["exit"] if value["exit"] >= 0 else 128 - value["exit"]
        return ProcessResult(
            exit_code=None if timed_out else code,
            stdout=bytes(self._stdout),
            stderr_tail=stderr,
            timed_out=timed_out,
            wall_s=wall_s,
            cpu_s=value["cpu_s"],
        )
