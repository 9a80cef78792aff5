"""One container as a sandbox."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from docker import APIClient
from docker.errors import APIError, DockerException, NotFound
from docker.types import Ulimit
from requests.exceptions import RequestException

from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxLost
from factory.core.files import Entry, FileTree
from factory.core.outcome import ResourceUse
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import WORKSPACE, CommandResult, ProcessResult, ResolvedImage, Sandbox, Snapshot
from sandboxes.docker.inside import EXPORT, FILL, INTERRUPT, KEEPER
from sandboxes.docker.process import STDERR_BYTES, Collected, seen
from sandboxes.docker.seccomp import profile
from sandboxes.docker.session import GRACE_S, Hands, Session
from sandboxes.docker.stream import ERROR, ExecStream
from sandboxes.docker.trees import Archive, Entries
from sandboxes.export import MAX_DEPTH
from sandboxes.faults import machine_faults
from sandboxes.files import read_argv, read_result, write_argv, write_result
from sandboxes.grace import LOAD_S, Look
from sandboxes.layers import load_tree
from sandboxes.meter import Meter
from sandboxes.shell import SHELL, HeadTail, limit_script, opening_script
from sandboxes.snapshots import SCRATCH, Shell, check_tree, scratch_digest, siblings
from sandboxes.spec import HOME, USER, Offered, shell_environment

ENGINE_FAULTS = (DockerException, RequestException, OSError)
"""What the SDK raises when the engine refuses, does not answer, or is gone."""
DEATH_S = 20.0
"""Seconds that killed processes may take to be gone before the sandbox counts as lost."""
HARNESS_S = 60.0
"""Seconds that the back end's own helpers (fill, export) may take in a container."""
HARNESS_PROCESSES = 8
"""Processes beyond the task's limit that the back end itself may need in a container."""


_FOLDERS = {"workspace": WORKSPACE, "tmp": "/tmp", "home": HOME, "shm": "/dev/shm"}
"""All that the agent can write to, by the names that trees have for it."""


@dataclass(frozen=True, kw_only=True)
class DockerImage:
    """A base image of the engine and what was found in it."""

    resolved: ResolvedImage
    reference: str
    """Image that containers are made from: the base with the task's own mounts."""
    python: str
    """Absolute path of the interpreter."""
    path: str
    """The PATH inside."""
    hidden: tuple[str, ...]
    """Folders covered by an empty read-only one: installed packages, and places that anyone could write to."""
    offered: Offered
    """Its locales and time zones."""
    machine: str
    """Whose instructions it holds, as `uname -m` tells it."""
    cores: int
    """Of the engine's machine."""


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
    ) -> None:
        """`fork` opens a sandbox of the same environment in another state."""
        self.image = image.resolved
        self._engine, self._image, self._spec, self._blobs = engine, image, spec, blobs
        self._environment = shell_environment(spec, {"PATH": image.path})
        self._fork = fork
        self._session: Session | None = None
        self._meter = Meter()
        self._shell = Shell(blobs, self._new_session, [*self._environment, "PWD", "OLDPWD", "SHLVL"])
        self._stopped = self._closed = False
        self._container: str = engine.create_container(
            image.reference,
            ["/bin/bash", "--norc", "--noprofile", "-c", KEEPER],
            user="0:0",
            hostname="sandbox",
            working_dir=WORKSPACE,
            labels=labels,
            host_config=self._host_config(),
        )["Id"]
        try:
            self._start(mounts)
            self._begin(snapshot or Snapshot(tree=spec.files), fresh=True, checked=snapshot is not None)
        except BaseException:
            self.close()
            raise

    def _host_config(self) -> dict[str, object]:
        limits = self._spec.limits
        disk = f"rw,exec,nosuid,nodev,size={limits.disk_bytes},nr_inodes={limits.disk_bytes // 4096 + 64}"
        writable = {WORKSPACE: "0755", HOME: "0755", "/tmp": "1777"}
        covers = {path: "ro,size=4k,mode=0755" for path in self._image.hidden if path not in writable}
        folders = {path: f"{disk},mode={mode},uid={USER},gid={USER}" for path, mode in writable.items()}
        memory = limits.memory_bytes + limits.disk_bytes
        config: dict[str, object] = self._engine.create_host_config(
            network_mode="none",
            cap_drop=["ALL"],
            cap_add=["KILL"],  # for the keeper: processes of the agent's user lose it
            security_opt=["no-new-privileges", f"seccomp={profile()}"],
            pids_limit=limits.processes + HARNESS_PROCESSES,
            mem_limit=memory,
            memswap_limit=memory,
            shm_size=limits.disk_bytes,
            tmpfs=covers | folders,
            cpuset_cpus=self._cores(),
            ulimits=[Ulimit(name="msgqueue", soft=0, hard=0)],  # memory that all containers of a user would share
        )
        return config

    def _cores(self) -> str | None:
        """As many cores as the task sees, at a random place; None for all."""
        first, count = secrets.randbelow(self._image.cores), self._spec.cores
        return ",".join(str((first + place) % self._image.cores) for place in range(count)) or None

    def _start(self, mounts: tuple[Mount, ...]) -> None:
        archive = Archive(owner=0)
        for mount in mounts:
            archive.add_tree(self._blobs, load_tree(self._blobs, mount.tree), mount.path.strip("/"))
        self._engine.put_archive(self._container, "/", archive.data())
        self._engine.start(self._container)
        if archive.special:
            script = "import os, stat, sys\nfor path in sys.argv[1:]: os.mknod('/' + path, stat.S_IFSOCK | 0o644)"
            self._harness([self._image.python, "-I", "-S", "-c", script, *archive.special], b"", user=0)

    def _begin(self, snapshot: Snapshot, *, fresh: bool, checked: bool) -> None:
        self._shell.begin(snapshot)
        tree = load_tree(self._blobs, snapshot.tree)
        scratch = FileTree() if snapshot.scratch is None else load_tree(self._blobs, snapshot.scratch)
        if tree or scratch or not fresh:
            archive = Archive(owner=USER)
            archive.add_tree(self._blobs, tree, "workspace")
            archive.add_tree(self._blobs, scratch)
            places = [f"{name}={folder}" for name, folder in _FOLDERS.items()]
            argv = [self._image.python, "-I", "-S", "-c", FILL, *places, "--", *archive.special]
            self._harness(argv, archive.data(), user=USER)
        if checked:
            check_tree(self._blobs, self.export(), snapshot.tree)

    def _harness(self, argv: list[str], stdin: bytes, *, user: int) -> None:
        stream = ExecStream(self._engine, self._container, argv, user=f"{user}:{user}")
        said = HeadTail(STDERR_BYTES)

        def take(_: int, data: bytes) -> bool:
            said.add(data)
            return False

        try:
            stream.send(stdin, last=True)
            stream.pump(time.monotonic() + HARNESS_S, take)
            code = stream.exit_code()
        finally:
            stream.close()
        if code != 0:
            raise SandboxLost(f"a helper in the container ended with {code}: {said.kept.decode(errors='replace').strip()}")

    def _enter(self, argv: list[str]) -> ExecStream:
        """Start `argv` as the agent with the sandbox's variables and no others."""
        variables = [f"{name}={value}" for name, value in self._environment.items()]
        return ExecStream(
            self._engine,
            self._container,
            ["/usr/bin/env", "-i", *variables, *argv],
            user=f"{USER}:{USER}",
            workdir=WORKSPACE,
        )

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
        hands = Hands(spawn=lambda: self._enter(SHELL), interrupt=self._interrupt, end=self._kill_all)
        self._session = Session(hands, opening)
        return self._session

    def _interrupt(self, started: float, shell: str = shlex.join(SHELL), first: int = 0) -> Look | None:
        """Best effort: a full process table or a killed helper leaves the rest to `_kill_all`."""
        argv = [self._image.python, "-I", "-S", "-c", INTERRUPT, shell, str(first)]
        said = HeadTail(STDERR_BYTES)

        def take(_: int, data: bytes) -> bool:
            said.add(data)
            return said.kept == b"r"

        try:
            stream = ExecStream(self._engine, self._container, argv, user=f"{USER}:{USER}")
        except SandboxLost:
            return None
        if stream.pump(time.monotonic() + LOAD_S, take):
            stream.send(b"%.3f\n" % (time.monotonic() - started), last=True)
            stream.pump(time.monotonic() + LOAD_S, take)
        stream.close()
        return seen(said.kept.removeprefix(b"r"))

    def _kill_all(self) -> None:
        """Kill every process but the keeper and wait until they are gone. Raises SandboxLost."""
        limit = time.monotonic() + DEATH_S
        while time.monotonic() < limit:
            try:
                self._engine.kill(self._container, "USR1")
                time.sleep(0.02)
                if len(self._engine.top(self._container)["Processes"]) <= 2:
                    return
            except APIError as error:
                raise SandboxLost(f"the container is gone: {error.explanation}") from error
        raise SandboxLost("the processes of a container do not die")

    @machine_faults(*ENGINE_FAULTS)
    def process(self, argv: list[str], *, stdin: bytes, timeout_s: float, output_bytes: int) -> ProcessResult:
        self._check_running()
        limits = limit_script(self._spec, bash=False, processes=False)
        script = f'{limits} && printf "s%d " $$ >&2 && {{ "$@"; code=$?; times >&2; exit $code; }}'
        started = time.monotonic()
        stream = self._enter(["/bin/sh", "-c", script, "sh", *argv])
        try:
            stream.send(stdin, last=True)
            collected = Collected(output_bytes)
            done = stream.pump(started + timeout_s, collected.take) or stream.ended
            if not done:
                self._interrupt(started, shell="", first=collected.pid)
                if not stream.pump(time.monotonic() + GRACE_S, collected.take) and not stream.ended:
                    self._kill_all()
            code = stream.exit_code() if done else None
            return self._meter.process(collected.result(code, time.monotonic() - started, timed_out=not done))
        finally:
            stream.close()

    def read_file(self, path: str, limit: int) -> bytes:
        return read_result(self.process(read_argv(path, limit), stdin=b"", timeout_s=20, output_bytes=limit + 1), path)

    def write_file(self, path: str, data: bytes) -> None:
        write_result(self.process(write_argv(path), stdin=data, timeout_s=20, output_bytes=1024), path)

    @machine_faults(*ENGINE_FAULTS)
    def stop(self) -> None:
        if not self._stopped and not self._closed:
            self._stopped = True
            self._measure()
            if self._session is not None:
                self._session.close()
            self._kill_all()

    def _measure(self) -> None:
        """From the container's counters: what the back end's own helpers took in it is in them."""
        with contextlib.suppress(*ENGINE_FAULTS):
            told = self._engine.stats(self._container, stream=False, one_shot=True)
            ticks, peak = told["cpu_stats"]["cpu_usage"].get("total_usage"), told["memory_stats"].get("max_usage")
            cpu_s = None if ticks is None else ticks / 1e9
            self._meter.see(cpu_s=cpu_s, beside=True, memory=peak, processes=None, disk=None)

    def usage(self) -> ResourceUse:
        return self._meter.use()

    @machine_faults(*ENGINE_FAULTS)
    def export(self) -> Digest:
        return self._trees({"": WORKSPACE}).save(self._blobs)

    def _trees(self, folders: dict[str, str]) -> FileTree:
        """The trees below `folders` as one, the paths of each below its prefix."""
        if self._closed:
            raise SandboxLost("the sandbox is closed")
        limit = self._spec.limits.disk_bytes
        places = [f"{prefix}={folder}" for prefix, folder in folders.items()]
        argv = [self._image.python, "-I", "-S", "-c", EXPORT, str(limit), str(MAX_DEPTH), *places]
        stream = ExecStream(self._engine, self._container, argv, user=f"{USER}:{USER}")
        entries, said = Entries(self._blobs, limit * len(folders)), HeadTail(STDERR_BYTES)

        def take(channel: int, data: bytes) -> bool:
            if channel == ERROR:
                said.add(data)
                return False
            return entries.add(data)

        try:
            stream.send(b"", last=True)
            stream.pump(time.monotonic() + HARNESS_S, take)
        finally:
            stream.close()
        if not entries.complete:
            raise SandboxLost(f"the files of the container cannot be read: {said.kept.decode(errors='replace').strip()}")
        return entries.tree()

    @machine_faults(*ENGINE_FAULTS)
    def snapshot(self) -> Snapshot:
        self._check_running()
        session, lost = self._shell.told()
        found = self._trees({f"{name}/": _FOLDERS[name] for name in ("workspace", *SCRATCH)})
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
        self._kill_all()
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
        with contextlib.suppress(NotFound):
            self._engine.remove_container(self._container, force=True, v=True)

    def _check_running(self) -> None:
        if self._closed or self._stopped:
            raise SandboxLost("the sandbox was stopped")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
