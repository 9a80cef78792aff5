"""One container as a sandbox."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from docker import APIClient

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxLost
from factory.core.files import Entry, FileTree
from factory.core.outcome import ResourceUse
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import WORKSPACE, CommandResult, ProcessResult, Sandbox, Snapshot
from sandboxes.docker.container import ENGINE_FAULTS, FOLDERS, Container, DockerImage
from sandboxes.docker.process import Collected
from sandboxes.docker.session import GRACE_S, Hands, Session
from sandboxes.faults import machine_faults
from sandboxes.files import FILE_S, read_argv, read_result, write_argv, write_result
from sandboxes.folders import load_tree
from sandboxes.meter import Meter
from sandboxes.shell import ENTER, SHELL, limit_script, opening_script
from sandboxes.snapshots import SCRATCH, Shell, check_tree, scratch_digest, siblings

ALL_KILLED = b"[nothing more could start, so all processes were killed, the shell among them; this is a new shell]\n"
"""Said before the output of the first command after that."""


class DockerSandbox:
    """See `sandboxes.contract.Sandbox`. `/workspace`, `/tmp`, the home and `/dev/shm` have the disk limit each."""

    @machine_faults(*ENGINE_FAULTS)
    def __init__(
        self,
        engine: APIClient,
        image: DockerImage,
        spec: EnvironmentSpec,
        blobs: BlobStore,
        mounts: tuple[Mount, ...],
        labels: dict[str, str],
        snapshot: Snapshot | None,
        fork: Callable[[Snapshot], Sandbox],
        *,
        watches: bool,
    ) -> None:
        """`fork` opens a sandbox of the same environment in another state; `watches` says whether processes may watch files."""
        self.image = image.resolved
        self._spec, self._blobs, self._fork = spec, blobs, fork
        self._container = Container(engine, image, spec, blobs)
        self._session: Session | None = None
        self._said = b""
        self._meter = Meter()
        self._shell = Shell(blobs, self._new_session, [*self._container.environment, "PWD", "OLDPWD", "SHLVL"])
        self._stopped = self._closed = False
        try:
            self._container.create(labels, watches=watches)
            self._container.start(mounts)
            self._begin(snapshot or Snapshot(tree=spec.files), fresh=True, checked=snapshot is not None)
        except BaseException:
            self.close()
            raise

    def _begin(self, snapshot: Snapshot, *, fresh: bool, checked: bool) -> None:
        self._shell.begin(snapshot)
        tree = load_tree(self._blobs, snapshot.tree)
        scratch = FileTree() if snapshot.scratch is None else load_tree(self._blobs, snapshot.scratch)
        if tree or scratch or not fresh:
            self._container.fill({"workspace": tree, "": scratch})
        if checked:
            check_tree(self._blobs, self.export(), snapshot.tree)

    @machine_faults(*ENGINE_FAULTS)
    def run(self, command: str, *, timeout_s: float, output_bytes: int) -> CommandResult:
        self._check_running()
        return self._meter.command(self._shell.run(command, timeout_s, output_bytes))

    @machine_faults(*ENGINE_FAULTS)
    def start(self) -> None:
        self._check_running()
        self._shell.start()

    def _new_session(self) -> Session:
        opening = opening_script(limit_script(self._spec, bash=True, processes=False))
        hands = Hands(
            spawn=lambda: self._container.enter(SHELL), interrupt=self._container.interrupt, end=self._container.kill_all
        )
        self._session, self._said = Session(hands, opening, self._said), b""
        return self._session

    @machine_faults(*ENGINE_FAULTS)
    def process(self, argv: list[str], *, stdin: bytes, timeout_s: float, output_bytes: int) -> ProcessResult:
        self._check_running()
        try:
            return self._process(argv, stdin, timeout_s, output_bytes)
        except SandboxLost:
            # It did not start. Processes of the agent beside it can take all the room or kill whatever appears, so that is
            # the machine's fault only when it does not start without them either.
            self._clear()
            return self._process(argv, stdin, timeout_s, output_bytes)

    def _clear(self) -> None:
        """Kill every process; the next command says so, if there was a shell. Raises SandboxLost."""
        self._container.kill_all()
        if self._session is not None and not self._session.closed:
            self._session.abandon()
            self._said = ALL_KILLED

    def _process(self, argv: list[str], stdin: bytes, timeout_s: float, output_bytes: int) -> ProcessResult:
        limits = limit_script(self._spec, bash=False, processes=False)
        script = f'{ENTER} && {limits} && printf "s%d " $$ >&2 && {{ "$@"; code=$?; times >&2; exit $code; }}'
        started = time.monotonic()
        stream = self._container.enter(["/bin/sh", "-c", script, "sh", *argv])
        try:
            stream.send(stdin, last=True)
            collected = Collected(output_bytes)
            done = stream.pump(started + timeout_s, collected.take) or stream.ended
            if not done:
                self._container.interrupt(started, shell="", first=collected.pid)
                if not stream.pump(time.monotonic() + GRACE_S, collected.take) and not stream.ended:
                    self._clear()
            code = stream.exit_code() if done else None
            return self._meter.process(collected.result(code, time.monotonic() - started, timed_out=not done))
        finally:
            stream.close()

    def read_file(self, path: str, limit: int) -> bytes:
        return read_result(self.process(read_argv(path, limit), stdin=b"", timeout_s=FILE_S, output_bytes=limit + 1), path)

    def write_file(self, path: str, data: bytes) -> None:
        write_result(self.process(write_argv(path), stdin=data, timeout_s=FILE_S, output_bytes=1024), path)

    @machine_faults(*ENGINE_FAULTS)
    def stop(self) -> None:
        if not self._stopped and not self._closed:
            self._stopped = True
            self._measure()
            if self._session is not None:
                self._session.close()
            self._container.kill_all()

    def _measure(self) -> None:
        """From the container's counters: what the back end's own helpers took in it is in them."""
        with contextlib.suppress(*ENGINE_FAULTS):
            cpu_s, memory = self._container.counted()
            self._meter.see(cpu_s=cpu_s, beside=True, memory=memory, processes=None, disk=None)

    def usage(self) -> ResourceUse:
        return self._meter.use()

    @machine_faults(*ENGINE_FAULTS)
    def export(self) -> Digest:
        if self._closed:
            raise SandboxLost("the sandbox is closed")
        return self._container.trees({"": WORKSPACE}).save(self._blobs)

    @machine_faults(*ENGINE_FAULTS)
    def snapshot(self) -> Snapshot:
        self._check_running()
        session, lost = self._shell.told()
        found = self._container.trees({f"{name}/": FOLDERS[name] for name in ("workspace", *SCRATCH)})
        parts: dict[str, dict[str, Entry]] = {name: {} for name in ("workspace", *SCRATCH)}
        for path, entry in found.items():
            name, _, rest = path.partition("/")
            parts[name][rest] = entry
        tree = FileTree(parts.pop("workspace")).save(self._blobs)
        scratch = scratch_digest(self._blobs, {name: FileTree(part) for name, part in parts.items()})
        return Snapshot(tree=tree, scratch=scratch, session=session, session_lost=lost)

    @machine_faults(*ENGINE_FAULTS)
    def restore(self, snapshot: Snapshot) -> None:
        self._check_running()
        load_tree(self._blobs, snapshot.tree)
        if self._session is not None:
            self._session.close()
            self._session = None
        self._said = b""
        self._container.kill_all()
        self._begin(snapshot, fresh=False, checked=True)

    def fork(self, count: int) -> list[Sandbox]:
        return siblings(self._fork, self.snapshot(), count)

    @machine_faults(*ENGINE_FAULTS)
    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._session is not None:
            self._session.abandon()
        self._container.remove()

    def _check_running(self) -> None:
        if self._closed or self._stopped:
            raise SandboxLost("the sandbox was stopped")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
