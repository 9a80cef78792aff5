"""Tasks for the tests of filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from factory.core.action import Action
from factory.core.blobs import BlobStore, put_json
from factory.core.demonstration import Demonstration
from factory.core.digest import digest_of
from factory.core.files import FileTree
from factory.core.task import Candidate, EnvironmentSpec, Origin, SplitKeys, Task, TaskKind, VerifierSpec
from sandboxes.verification.bundles import bundle


def candidate(*, text: str, instruction: str = "Do it.") -> Candidate:
    """A candidate whose task can be read and not be run."""
    nowhere = digest_of("nowhere")
    task = Task(
        kind=TaskKind.TERMINAL,
        instruction=instruction,
        environment=EnvironmentSpec(files=nowhere),
        verifier=VerifierSpec(bundle=nowhere),
        held_out=None,
        solution=nowhere,
    )
    return Candidate(
        task=task,
        origin=Origin(generator="tests", generator_version="1", seed=0),
        name="tests/0",
        families=("copy",),
        keys=SplitKeys(keys=("signature:copy",)),
        text=text,
    )


def checked_by(blobs: BlobStore, source: str) -> VerifierSpec:
    """A verifier whose checker is `source`, under the real bootstrap."""
    made = FileTree.load(blobs, bundle(blobs, checker="files", spec={}))
    return VerifierSpec(bundle=made.merged(FileTree.of(blobs, {"checker.py": source})).save(blobs))


def solved_by(blobs: BlobStore, *commands: str) -> str:
    """The blob of a solution made of shell commands."""
    actions: Sequence[Action] = [*(Action("bash", {"command": command}) for command in commands), Action("submit")]
    return put_json(blobs, Demonstration(tuple(actions)).manifest())


def with_keys(one: Candidate, keys: tuple[str, ...]) -> Candidate:
    """The candidate with other split keys."""
    return replace(one, keys=SplitKeys(keys=keys))
