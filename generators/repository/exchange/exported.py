"""A repository task in the columns of SWE-smith and of SWE-bench.

Both speak of the environment's files, the state in which the agent begins. SWE-smith: `patch` is the bug, what turns the
fixed files into those. SWE-bench: `patch` is the fix, `test_patch` brings the tests (the agent has none), and `base_commit` is
the digest of the environment's tree, which names its content as a commit does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from factory.agent.tools import TOOLS
from factory.core.blobs import BlobStore, get_json
from factory.core.demonstration import Demonstration
from factory.core.digest import Digest
from factory.core.errors import GeneratorError
from factory.core.files import FileTree
from factory.core.task import Candidate, Task, VerifierSpec
from generators.repository.patches import difference
from sandboxes.contract import Backend

SHORT = 8
"""Digits of a task's digest in an instance's name."""


def swesmith(candidate: Candidate, backend: Backend, blobs: BlobStore) -> dict[str, Any]:
    """The columns of a SWE-smith row. Raises GeneratorError for a task without tests, SandboxError."""
    task = candidate.task
    broken = FileTree.load(blobs, task.environment.files)
    fail, keep, _ = asked(task, blobs)
    return {
        "instance_id": instance_id(candidate),
        "repo": repo(candidate),
        "patch": difference(fixed_tree(task, backend, blobs), broken, blobs),
        "FAIL_TO_PASS": fail,
        "PASS_TO_PASS": keep,
        "image_name": task.environment.image,
        "problem_statement": task.instruction,
    }


def swebench(candidate: Candidate, backend: Backend, blobs: BlobStore) -> dict[str, Any]:
    """The columns of a SWE-bench row, lists of tests as JSON text as its published files have them."""
    task = candidate.task
    broken = FileTree.load(blobs, task.environment.files)
    fail, keep, tests = asked(task, blobs)
    return {
        "instance_id": instance_id(candidate),
        "repo": repo(candidate),
        "base_commit": task.environment.files,
        "patch": difference(broken, fixed_tree(task, backend, blobs), blobs),
        "test_patch": difference(broken.without(*tests), broken.merged(tests), blobs),
        "problem_statement": task.instruction,
        "hints_text": "",
        "created_at": "",
        "version": candidate.origin.source or "",
        "FAIL_TO_PASS": json.dumps(fail),
        "PASS_TO_PASS": json.dumps(keep),
    }


EXPORTS: Mapping[str, Callable[[Candidate, Backend, BlobStore], dict[str, Any]]] = MappingProxyType(
    {"swesmith": swesmith, "swebench": swebench}
)
"""The columns of a task by the name of the format."""


def fixed_tree(task: Task, backend: Backend, blobs: BlobStore) -> FileTree:
    """What the reference solution leaves, taken by the agent's own tools in a sandbox. Raises GeneratorError, SandboxError."""
    actions = Demonstration.from_manifest(get_json(blobs, task.solution)).actions
    with backend.open(task.environment, blobs) as sandbox:
        for action in actions:
            tool = TOOLS[action.tool]
            if tool.run is None:
                break
            done = tool.run(sandbox, action.arguments, task.environment.limits)
            if done.exit_code != 0:
                raise GeneratorError(f"the reference solution fails at {action.tool}: {done.text.strip()[:200]}")
        sandbox.stop()
        return FileTree.load(blobs, sandbox.export())


def asked(task: Task, blobs: BlobStore) -> tuple[list[str], list[str], FileTree]:
    """FAIL_TO_PASS and PASS_TO_PASS of both verifiers, sorted, and their test files.

    Raises GeneratorError when a verifier is not one of a repository's tests.
    """
    fail: set[str] = set()
    every: set[str] = set()
    tests = FileTree()
    for verifier in filter(None, (task.verifier, task.held_out)):
        spec, sealed = _bundle(verifier, blobs)
        fail.update(spec["audit"])
        every.update(spec["tests"])
        known = FileTree.load(blobs, task.environment.files)
        tests = tests.merged({path: entry for path, entry in sealed.items() if path not in known})
    return sorted(fail), sorted(every - fail), tests


def _bundle(verifier: VerifierSpec, blobs: BlobStore) -> tuple[dict[str, Any], FileTree]:
    """The specification of a bundle and the project's files that it holds."""
    tree = FileTree.load(blobs, verifier.bundle)
    spec = json.loads(tree.read(blobs, "spec.json")) if "spec.json" in tree else {}
    if not {"audit", "tests"} <= spec.keys():
        raise GeneratorError(f"verifier {verifier.bundle[:12]} runs no tests of a repository")
    return spec, FileTree({path.removeprefix("files/"): entry for path, entry in tree.items() if path.startswith("files/")})


def instance_id(candidate: Candidate) -> str:
    """Project, operator and the first digits of the digest: `schedule.off_by_one__1a2b3c4d`."""
    return f"{repo(candidate).replace('/', '__')}.{candidate.origin.operator or 'task'}__{_short(candidate.task.digest)}"


def repo(candidate: Candidate) -> str:
    """The repository's name: the first of the task's split keys of one."""
    keys = [key.partition(":")[2] for key in candidate.keys.keys if key.startswith("repository:")]
    return keys[0] if keys else candidate.name


def _short(digest: Digest) -> str:
    return digest[:SHORT]
