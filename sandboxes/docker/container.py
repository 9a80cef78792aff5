"""One container of the engine: how it is made, entered, filled, read, and what is killed in it."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shlex
import time
from dataclasses import dataclass

from docker import APIClient
from docker.errors import APIError, DockerException, NotFound
from docker.types import Ulimit
from requests.exceptions import RequestException

from factory.core.blobs import BlobStore
from factory.core.errors import SandboxLost
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import WORKSPACE, ResolvedImage
from sandboxes.docker.inside import EXPORT, FILL, INTERRUPT, KEEPER, SPECIAL
from sandboxes.docker.process import STDERR_BYTES, seen
from sandboxes.docker.seccomp import profile
from sandboxes.docker.stream import ERROR, ExecStream
from sandboxes.docker.trees import Archive, Entries
from sandboxes.export import MAX_DEPTH, MAX_PATH_BYTES
from sandboxes.folders import load_tree
from sandboxes.grace import LOAD_S, Look
from sandboxes.shell import SHELL, HeadTail
from sandboxes.spec import HOME, USER, Offered, memory_of_all, shell_environment

logger = logging.getLogger(__name__)

ENGINE_FAULTS = (DockerException, RequestException, OSError)
"""What the SDK raises when the engine refuses, does not answer, or is gone."""
DEATH_S = 20.0
"""Seconds that killed processes may take to be gone before the sandbox counts as lost."""
READINGS = 3
"""How often the files of a container are read until they come whole."""
HARNESS_S = 60.0
"""Seconds that the back end's own helpers (fill, export) may take in a container."""
INODE_BYTES = 2048
"""Memory that an empty file takes, its name included, bytes at most."""
HARNESS_PROCESSES = 8
"""Processes beyond the task's limit that the back end itself may need in a container."""

FOLDERS = {"workspace": WORKSPACE, "tmp": "/tmp", "home": HOME, "shm": "/dev/shm"}
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


class Container:
    """A container of `image` for `spec`: made by `create`, running from `start` to `remove`."""

    def __init__(self, engine: APIClient, image: DockerImage, spec: EnvironmentSpec, blobs: BlobStore) -> None:
        self._engine, self._image, self._spec, self._blobs = engine, image, spec, blobs
        self.environment = shell_environment(spec, {"PATH": image.path})
        """All variables that the agent's processes begin with."""
        self._id = ""

    def create(self, labels: dict[str, str], *, watches: bool) -> None:
        """Make it; `labels` tell its owner, `watches` whether its processes may watch files."""
        self._id = self._engine.create_container(
            self._image.reference,
            ["/bin/bash", "--norc", "--noprofile", "-c", KEEPER],
            user="0:0",
            hostname="sandbox",
            working_dir=WORKSPACE,
            labels=labels,
            host_config=self._host_config(watches),
        )["Id"]

    def _host_config(self, watches: bool) -> dict[str, object]:
        limits = self._spec.limits
        inodes = limits.disk_bytes // 4096 + 64
        disk = f"rw,exec,nosuid,nodev,size={limits.disk_bytes},nr_inodes={inodes}"
        writable = {WORKSPACE: "0755", HOME: "0755", "/tmp": "1777"}
        covers = {path: "ro,size=4k,mode=0755" for path in self._image.hidden if path not in writable}
        folders = {path: f"{disk},mode={mode},uid={USER},gid={USER}" for path, mode in writable.items()}
        shared = f"{disk.replace('exec', 'noexec')},mode=1777"
        memory = memory_of_all(limits) + len(FOLDERS) * (limits.disk_bytes + inodes * INODE_BYTES)
        config: dict[str, object] = self._engine.create_host_config(
            network_mode="none",
            cap_drop=["ALL"],
            cap_add=["KILL"],  # for the keeper: processes of the agent's user lose it
            security_opt=["no-new-privileges", f"seccomp={profile(watches=watches)}"],
            pids_limit=limits.processes + HARNESS_PROCESSES,
            mem_limit=memory,
            memswap_limit=memory,
            tmpfs=covers | folders | {FOLDERS["shm"]: shared},
            cpuset_cpus=self._cores(),
            ulimits=[Ulimit(name="msgqueue", soft=0, hard=0)],  # memory that all containers of a user would share
        )
        return config

    def _cores(self) -> str | None:
        """As many cores as the task sees, at a random place; None for all."""
        first, count = secrets.randbelow(self._image.cores), self._spec.cores
        return ",".join(str((first + place) % self._image.cores) for place in range(count)) or None

    def start(self, mounts: tuple[Mount, ...]) -> None:
        """Start it with `mounts` beside those that its image holds."""
        archive = Archive(owner=0)
        for mount in mounts:
            archive.add_tree(self._blobs, load_tree(self._blobs, mount.tree), mount.path.strip("/"))
        self._engine.put_archive(self._id, "/", archive.data())
        self._engine.start(self._id)
        self._add_special([f"/{path}" for path in archive.special], user=0)

    def fill(self, trees: dict[str, FileTree]) -> None:
        """Make the folders of `FOLDERS` hold these trees, by their names, and nothing else. Raises SandboxLost."""
        archive = Archive(owner=USER)
        for name, tree in trees.items():
            archive.add_tree(self._blobs, tree, name)
        places = [f"{name}={folder}" for name, folder in FOLDERS.items()]
        self._harness([self._image.python, "-I", "-S", "-c", FILL, *places], archive.data(), user=USER)
        named = (path.partition("/") for path in archive.special)
        self._add_special([f"{FOLDERS[name]}/{rest}" for name, _, rest in named], user=USER)

    def _add_special(self, paths: list[str], *, user: int) -> None:
        """Make special entries; there can be more of them than arguments of a process."""
        if paths:
            argv = [self._image.python, "-I", "-S", "-c", SPECIAL]
            self._harness(argv, b"\0".join(map(os.fsencode, paths)), user=user)

    def _harness(self, argv: list[str], stdin: bytes, *, user: int) -> None:
        stream = ExecStream(self._engine, self._id, argv, user=f"{user}:{user}")
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

    def enter(self, argv: list[str]) -> ExecStream:
        """Start `argv` as the agent with the sandbox's variables and no others, at the root (`sandboxes.shell.ENTER`)."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return ExecStream(
            self._engine,
            self._id,
            ["/usr/bin/env", "-i", *variables, *argv],
            user=f"{USER}:{USER}",
            workdir="/",
        )

    def interrupt(self, started: float, shell: str = shlex.join(SHELL), first: int = 0) -> Look | None:
        """Make the program of command line `shell` give up, and kill what started since `started`, or with process `first`.

        Best effort: a full process table or a killed helper leaves the rest to `kill_all`.
        """
        argv = [self._image.python, "-I", "-S", "-c", INTERRUPT, shell, str(first)]
        said = HeadTail(STDERR_BYTES)

        def take(_: int, data: bytes) -> bool:
            said.add(data)
            return said.kept == b"r"

        try:
            stream = ExecStream(self._engine, self._id, argv, user=f"{USER}:{USER}")
        except SandboxLost:
            return None
        if stream.pump(time.monotonic() + LOAD_S, take):
            stream.send(b"%.3f\n" % (time.monotonic() - started), last=True)
            stream.pump(time.monotonic() + LOAD_S, take)
        stream.close()
        return seen(said.kept.removeprefix(b"r"))

    def kill_all(self) -> None:
        """Kill every process but the keeper and wait until they are gone. Raises SandboxLost."""
        limit = time.monotonic() + DEATH_S
        while time.monotonic() < limit:
            try:
                self._engine.kill(self._id, "USR1")
                time.sleep(0.02)
                if len(self._engine.top(self._id)["Processes"]) <= 2:
                    return
            except APIError as error:
                raise SandboxLost(f"the container is gone: {error.explanation}") from error
        raise SandboxLost("the processes of a container do not die")

    def trees(self, folders: dict[str, str]) -> FileTree:
        """The trees below `folders` as one, the paths of each below its prefix. Raises SandboxLost when none of `READINGS`
        comes back whole: the engine starts a program in steps, and the kill of all others can hit one that it has begun."""
        for _ in range(READINGS - 1):
            try:
                return self._read(folders)
            except SandboxLost as error:
                logger.info("reading the files of container %s again: %s", self._id[:12], error)
        return self._read(folders)

    def _read(self, folders: dict[str, str]) -> FileTree:
        limit = self._spec.limits.disk_bytes
        places = [f"{prefix}={folder}" for prefix, folder in folders.items()]
        bounds = [str(limit), str(MAX_DEPTH), str(MAX_PATH_BYTES)]
        argv = [self._image.python, "-I", "-S", "-c", EXPORT, *bounds, *places]
        stream = ExecStream(self._engine, self._id, argv, user=f"{USER}:{USER}")
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

    def counted(self) -> tuple[float | None, int | None]:
        """Processor time, seconds, and the most memory, bytes, by the engine's counters; the back end's own helpers are in
        them. None where this machine's control groups have no such counter."""
        told = self._engine.stats(self._id, stream=False, one_shot=True)
        spent = told["cpu_stats"]["cpu_usage"].get("total_usage")
        return None if spent is None else spent / 1e9, told["memory_stats"].get("max_usage")

    def remove(self) -> None:
        """Kill and remove it, if it was made."""
        if self._id:
            with contextlib.suppress(NotFound):
                self._engine.remove_container(self._id, force=True, v=True)
