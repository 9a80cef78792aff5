"""What is compared: our back ends behind one contract, and containers driven plainly through the docker SDK."""

from __future__ import annotations

import functools
import hashlib
import itertools
import random
from pathlib import Path

import docker
from docker import APIClient

from factory.core.blobs import BlobStore
from factory.core.digest import Digest, Json
from factory.core.files import FileTree
from factory.core.task import EnvironmentSpec, Limits, VerifierSpec
from sandboxes.backends import open_backend
from sandboxes.contract import Backend, Sandbox, Snapshot
from sandboxes.verification.bundles import bundle
from sandboxes.verification.grade import grade
from tests.benchmarks.measures import Times

FILES = 20
"""Files in a task's start, 100 bytes each."""
STATE_FILES, STATE_FILE_BYTES = 100, 104_858
"""What an episode wrote before it is forked: 10 MB."""
SIBLINGS = 4
"""Forks of one state."""
COMMAND = "true"
"""The trivial command; `cat` of one file is the one that starts a program."""

_random = random.Random(0)
_numbers = itertools.count()


class Ours:
    """One of our back ends with one small task."""

    def __init__(self, backend: Backend, blobs: BlobStore, times: Times) -> None:
        self.name, self.backend, self._blobs, self.times = backend.name, backend, blobs, times
        contents: dict[str, bytes | str] = {f"d{number % 3}/f{number}": "x" * 100 for number in range(FILES)}
        self.start = FileTree.of(blobs, contents).save(blobs)
        self.spec = EnvironmentSpec(files=self.start, limits=Limits(disk_bytes=64 << 20))
        self._verifier = self._files_verifier(contents)

    def _files_verifier(self, contents: dict[str, bytes | str]) -> VerifierSpec:
        tree: dict[str, Json] = {
            folder: {"kind": "directory"} for folder in sorted({path.partition("/")[0] for path in contents})
        }
        tree |= {
            path: {
                "kind": "file",
                "sha256": hashlib.sha256(str(text).encode()).hexdigest(),
                "size": len(text),
                "executable": False,
                "loose": False,
            }
            for path, text in contents.items()
        }
        spec = {"view": "asked", "tree": tree, "steps": [{"name": "files", "paths": sorted(contents)}]}
        return VerifierSpec(bundle=bundle(self._blobs, checker="files", spec=spec))

    def ready(self, *, snapshot: Snapshot | None = None) -> Sandbox:
        """A reset: a fresh sandbox whose tree was compared with the digest that it should have, and one command answered."""
        sandbox = self.backend.open(self.spec, self._blobs, snapshot=snapshot)
        if snapshot is None and sandbox.export() != self.start:  # with a snapshot the back end has compared them
            raise RuntimeError(f"{self.name} began with another tree")
        if sandbox.run(COMMAND, timeout_s=60, output_bytes=100).exit_code != 0:
            raise RuntimeError(f"{self.name} did not answer")
        return sandbox

    def round(self, repeats: int) -> None:
        """Measure everything `repeats` times."""
        for _ in range(repeats):
            sandbox = self.times.measure(self.name, "reset", self.ready)
            self._use(sandbox)
            self.times.measure(self.name, "close", sandbox.close)
            self.times.measure(self.name, "verification", self._grade)

    def _use(self, sandbox: Sandbox) -> None:
        self.times.measure(self.name, "command", lambda: self._run(sandbox, COMMAND))
        self.times.measure(self.name, "program", lambda: self._run(sandbox, "cat d0/f0"))
        self.times.measure(self.name, "snapshot", sandbox.snapshot)
        self._fork(sandbox)

    def _run(self, sandbox: Sandbox, command: str) -> None:
        sandbox.run(command, timeout_s=60, output_bytes=4096)

    def _fork(self, sandbox: Sandbox) -> None:
        """Give the episode 10 MB that no other has, then open siblings in its state."""
        unique = f"{next(_numbers)}-{_random.random()}"
        script = (
            f"import random, os; r = random.Random({unique!r}); os.mkdir('state'); "
            f"[open(f'state/{{n}}', 'wb').write(r.randbytes({STATE_FILE_BYTES})) for n in range({STATE_FILES})]"
        )
        made = sandbox.process(["python3", "-I", "-S", "-c", script], stdin=b"", timeout_s=60, output_bytes=100)
        if made.exit_code != 0:
            raise RuntimeError(f"{self.name}: {made.stderr_tail.decode(errors='replace')}")
        self._run(sandbox, "cd d1; export kept=1; f() { :; }")
        saved = self.times.measure(self.name, "snapshot 10 MB", sandbox.snapshot)
        siblings = [self.times.measure(self.name, "first fork 10 MB", lambda: self.ready(snapshot=saved))]
        for _ in range(SIBLINGS):
            siblings.append(self.times.measure(self.name, "fork 10 MB", lambda: self.ready(snapshot=saved)))
        for sibling in siblings:
            sibling.close()

    def _grade(self) -> Digest:
        (verdict,) = grade(self.backend, self._blobs, self.spec, [self._verifier], start=self.start, end=self.start)
        if not all(check.passed for check in verdict.checks):
            raise RuntimeError(f"{self.name}: {verdict.checks}")
        return verdict.end


class Plain:
    """`docker run IMAGE true` and `docker exec CONTAINER true` through the SDK's own calls, with nothing of ours."""

    name = "docker SDK"

    def __init__(self, image: str, times: Times) -> None:
        self._engine: APIClient = docker.from_env().api
        self._image, self.times = image, times
        self._config = self._engine.create_host_config(network_mode="none")
        self._open: list[str] = []

    def round(self, repeats: int) -> None:
        """Measure both `repeats` times. Removing the container is not in the time of a run."""
        for _ in range(repeats):
            self._engine.remove_container(self.times.measure(self.name, "docker run", self._run), force=True)
            container = self._start(["sleep", "600"])
            self.times.measure(self.name, "docker exec", functools.partial(self._exec, container))
            self._engine.remove_container(self._open.pop(), force=True)

    def _start(self, command: list[str]) -> str:
        made: str = self._engine.create_container(self._image, command, host_config=self._config)["Id"]
        self._open.append(made)
        self._engine.start(made)
        return made

    def _run(self) -> str:
        made = self._start([COMMAND])
        if self._engine.wait(made)["StatusCode"] != 0:
            raise RuntimeError("docker run failed")
        return self._open.pop()

    def _exec(self, container: str) -> None:
        made = self._engine.exec_create(container, [COMMAND])["Id"]
        self._engine.exec_start(made)
        if self._engine.exec_inspect(made)["ExitCode"] != 0:
            raise RuntimeError("docker exec failed")

    def close(self) -> None:
        """Remove what an interrupted round left."""
        for container in self._open:
            self._engine.remove_container(container, force=True)
        self._engine.close()


def ours(name: str, cache: Path, image: str, blobs: BlobStore, times: Times) -> Ours:
    """A back end of ours. Raises SandboxError when it cannot work here."""
    made = Ours(open_backend(name, cache=cache, docker_image=image), blobs, times)
    made.backend.resolve(made.spec.image)
    return made
