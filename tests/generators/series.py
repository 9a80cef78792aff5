"""What the series of any generator must hold, checked in other processes too."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence

from factory.core.action import Action
from factory.core.blobs import BlobStore, MemoryBlobs, get_json
from factory.core.demonstration import Demonstration
from factory.core.files import FileTree
from factory.core.task import Candidate, Task
from generators.contract import Generator
from sandboxes.contract import Backend

_PROGRAM = """
import json, sys
from factory.core.blobs import MemoryBlobs
from {module} import {generator}
numbers = json.loads(sys.argv[1])
series = (next({generator}().generate(MemoryBlobs(), seed=7, start=n, count=1)) for n in numbers)
print(json.dumps([[c.task.digest, c.origin.digest, c.name] for c in series]))
"""


_SEARCH = """
import json, os, sys, zlib
needles = [needle.encode("latin-1") for needle in json.load(sys.stdin)]
for top in ("/workspace", "/opt", "/tmp", "/home", "/var", "/run", "/dev/shm", "/etc", "/proc"):
    for folder, folders, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.isfile(path) or (top == "/proc" and name not in ("environ", "cmdline", "mountinfo")):
                continue
            try:
                with open(path, "rb") as file:
                    data = file.read(1 << 24)
                data += zlib.decompress(data)
            except (OSError, zlib.error):
                pass
            for number, needle in enumerate(needles):
                if needle in data:
                    print(number, path)
"""


def visible(task: Task, needles: Sequence[bytes], backend: Backend, blobs: BlobStore) -> list[str]:
    """`number path` of each needle that stands in a file, an argument or a variable within the agent's reach."""
    with backend.open(task.environment, blobs) as sandbox:
        sandbox.run("ls -la; history", timeout_s=20, output_bytes=1000)
        texts = json.dumps([needle.decode("latin-1") for needle in needles])
        argv = ["python3", "-I", "-S", "-c", _SEARCH]
        found = sandbox.process(argv, stdin=texts.encode(), timeout_s=60, output_bytes=100_000)
    assert (found.exit_code, found.stderr_tail) == (0, b"")
    return found.stdout.decode().splitlines()


def answers(candidate: Candidate, blobs: MemoryBlobs) -> list[bytes]:
    """What the agent must not see: every file of both verifiers, the digests that they compare with, the reference solution."""
    assert candidate.task.held_out is not None
    found = [value.encode() for action in gold(candidate, blobs) for value in action.arguments.values()]
    for verifier in (candidate.task.verifier, candidate.task.held_out):
        tree = FileTree.load(blobs, verifier.bundle)
        found += [tree.read(blobs, path) for path in tree]
        found += re.findall(rb"[0-9a-f]{64}", tree.read(blobs, "spec.json"))
    return [*found, blobs.get(candidate.task.solution)]


def elsewhere(generator: type[Generator], numbers: Sequence[int], hash_seed: int) -> list[list[str]]:
    """[task digest, origin digest, name] of single candidates of seed 7, made in a process of its own in this order."""
    program = _PROGRAM.format(module=generator.__module__, generator=generator.__name__)
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "LC_ALL": "C", "TZ": "Pacific/Auckland"}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(list(numbers))], capture_output=True, text=True, env=environment, check=True
    )
    result: list[list[str]] = json.loads(done.stdout)
    return result


def identities(candidates: Sequence[Candidate]) -> list[list[str]]:
    return [[candidate.task.digest, candidate.origin.digest, candidate.name] for candidate in candidates]


def gold(candidate: Candidate, blobs: MemoryBlobs) -> tuple[Action, ...]:
    return Demonstration.from_manifest(get_json(blobs, candidate.task.solution)).actions


def assert_complete(task: Task, blobs: MemoryBlobs) -> None:
    """Every blob that the task names is stored."""
    assert task.held_out is not None
    for tree in (task.environment.files, task.verifier.bundle, task.held_out.bundle):
        for entry in FileTree.load(blobs, tree).values():
            assert entry.content is None or blobs.has(entry.content)
    assert blobs.has(task.solution)


def assert_sealed(candidate: Candidate, backend: Backend, blobs: MemoryBlobs) -> None:
    """Of the task's first file, and of all that its verifiers and its solution hold, the agent can read the file alone."""
    path, entry = next(iter(FileTree.load(blobs, candidate.task.environment.files).items()))
    assert entry.content is not None
    needles = [blobs.get(entry.content), *answers(candidate, blobs)]
    assert len(needles) > 8
    assert visible(candidate.task, needles, backend, blobs) == [f"0 /workspace/{path}"]
