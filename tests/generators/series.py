"""What the series of any generator must hold, checked in other processes too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from factory.core.action import Action
from factory.core.blobs import MemoryBlobs, get_json
from factory.core.demonstration import Demonstration
from factory.core.files import FileTree
from factory.core.task import Candidate, Task
from generators.contract import Generator

_PROGRAM = """
import json, sys
from factory.core.blobs import MemoryBlobs
from {module} import {generator}
numbers = json.loads(sys.argv[1])
series = (next({generator}().generate(MemoryBlobs(), seed=7, start=n, count=1)) for n in numbers)
print(json.dumps([[c.task.digest, c.origin.digest, c.name] for c in series]))
"""


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
