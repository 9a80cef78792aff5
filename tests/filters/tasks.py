"""Tasks for the tests of filters."""

from __future__ import annotations

from collections.abc import Sequence

from factory.core.action import Action
from factory.core.blobs import BlobStore, put_json
from factory.core.demonstration import Demonstration
from factory.core.digest import digest_of
from factory.core.task import Candidate, EnvironmentSpec, Origin, SplitKeys, Task, TaskKind, VerifierSpec


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


def solved_by(blobs: BlobStore, *commands: str) -> str:
    """The blob of a solution made of shell commands."""
    actions: Sequence[Action] = [*(Action("bash", {"command": command}) for command in commands), Action("submit")]
    return put_json(blobs, Demonstration(tuple(actions)).manifest())
