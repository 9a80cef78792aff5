"""Tasks for the tests of filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from factory.core.action import Action
from factory.core.blobs import BlobStore, put_json
from factory.core.demonstration import Demonstration
from factory.core.digest import Digest
from factory.core.files import FileTree
from factory.core.task import Candidate, EnvironmentSpec, Mount, Origin, SplitKeys, Task, TaskKind, VerifierSpec
from sandboxes.verification.bundles import bundle


def shipping(
    blobs: BlobStore,
    *,
    text: str = "",
    instruction: str = "Do it.",
    files: Mapping[str, bytes | str] | None = None,
    mount: Mapping[str, bytes | str] | None = None,
    verifier: Mapping[str, bytes | str] | None = None,
    held_out: Mapping[str, bytes | str] | None = None,
    solution: Sequence[Action] = (),
) -> Candidate:
    """A candidate with these contents, which can be read and not be run."""

    def tree(contents: Mapping[str, bytes | str] | None) -> Digest:
        return FileTree.of(blobs, contents or {}).save(blobs)

    task = Task(
        kind=TaskKind.TERMINAL,
        instruction=instruction,
        environment=EnvironmentSpec(files=tree(files), mounts=(Mount(path="/deps", tree=tree(mount)),) if mount else ()),
        verifier=VerifierSpec(bundle=tree(verifier)),
        held_out=VerifierSpec(bundle=tree(held_out)) if held_out else None,
        solution=put_json(blobs, Demonstration(tuple(solution)).manifest()),
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
