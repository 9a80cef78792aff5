"""What a candidate must be before it is registered, and which blobs a task needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from factory.core.blobs import BlobStore, get_json
from factory.core.digest import Digest, canonical_bytes, canonical_text, digest_bytes
from factory.core.errors import Excluded, InvalidTask, NotFound, UserError
from factory.core.task import REPOSITORY, SCHEME, Candidate, Task, TaskKind, repository_key

_KEY = re.compile(r"[a-z][a-z0-9-]*:.*\S.*", re.DOTALL)
"""Kind and value: the kind in one spelling, or `Repository:` would be a repository's key that is not compared."""


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A candidate that may be registered, with what was computed on the way."""

    candidate: Candidate
    digest: Digest
    manifest: bytes
    origin: Digest
    instruction: Digest


def admit(candidate: Candidate, blobs: BlobStore, present: set[Digest], excluded: frozenset[str]) -> Admitted:
    """Check one candidate. `present` holds digests known to be stored whole, and grows.

    Raises InvalidTask (empty instruction, unknown scheme, no provenance, no name, no split keys),
    NotFound (a blob or tree that it names is not stored) or Excluded (its repository is one of an evaluation set).
    """
    task, name = candidate.task, candidate.name
    if not task.instruction.strip():
        raise InvalidTask(f"task {name!r} has an empty instruction")
    if not name.strip():
        raise InvalidTask(f"task {task.digest} has no name")
    if not candidate.origin.generator or not candidate.origin.generator_version:
        raise InvalidTask(f"task {name!r} has no provenance: its origin names no generator and version")
    check_keys(candidate.keys.keys, name, excluded)
    if task.kind is TaskKind.REPOSITORY and not any(key.startswith(REPOSITORY) for key in candidate.keys.keys):
        raise InvalidTask(f"task {name!r} is of a repository but has no key {REPOSITORY}<name>")
    if any(not family or "\n" in family for family in candidate.families):
        raise InvalidTask(f"task {name!r} has a family without a name")
    value = task.manifest()
    if value["scheme"] != SCHEME:
        raise InvalidTask(f"task {name!r} has scheme {value['scheme']!r}; this registry takes {SCHEME}")
    for digest in named_blobs(task, blobs, present):
        if not blobs.has(digest):
            raise NotFound(f"task {name!r} names a blob that is not stored: {digest}")
        present.add(digest)
    manifest = canonical_bytes(value)
    return Admitted(
        candidate=candidate,
        digest=digest_bytes(manifest),
        manifest=manifest,
        origin=candidate.origin.digest,
        instruction=digest_bytes(canonical_text(task.instruction).encode()),
    )


def check_keys(keys: tuple[str, ...], name: str, excluded: frozenset[str]) -> None:
    """Raise unless `keys` may be split keys of the task `name`.

    InvalidTask: none, one that is not of the form `kind:value`, or one of a repository that is not in the form of
    `repository_key`. Excluded: one of an excluded repository.
    """
    if not keys:
        raise InvalidTask(f"task {name!r} has no split keys: nothing would keep it out of a holdout's company")
    for key in keys:
        if not _KEY.fullmatch(key):
            raise InvalidTask(f"task {name!r} has the split key {key!r}; it must be kind:value, the kind of a-z, 0-9 and -")
        if key.startswith(REPOSITORY):
            _check_repository(key, name, excluded)


def _check_repository(key: str, name: str, excluded: frozenset[str]) -> None:
    value = key.removeprefix(REPOSITORY)
    try:
        canonical = repository_key(value)
    except UserError as error:
        raise InvalidTask(f"task {name!r} has the split key {key!r}: {error}") from error
    if key != canonical:
        raise InvalidTask(f"task {name!r} has the split key {key!r}; the key of that repository is {canonical!r}")
    if repository_name(value) in excluded:
        raise Excluded(f"excluded repository: task {name!r} comes from {value!r}, of which evaluation sets are made")


def repository_name(value: str) -> str:
    """The name by which repositories are excluded: canonical and without owners, so that forks count too. Raises UserError."""
    return repository_key(value).removeprefix(REPOSITORY).rsplit("/", 1)[-1]


def trees(task: Task) -> tuple[Digest, ...]:
    """Every tree that a task names."""
    verifiers = (task.verifier, *((task.held_out,) if task.held_out else ()))
    mounts = tuple(mount.tree for mount in task.environment.mounts)
    return (task.environment.files, *mounts, *(verifier.bundle for verifier in verifiers))


def named_blobs(task: Task, blobs: BlobStore, known: AbstractSet[Digest] = frozenset()) -> Iterator[Digest]:
    """Every blob that a task needs: its solution, its trees' manifests and their files; what is in `known` is left out.

    A tree's manifest is yielded after its files, so that a manifest in `known` means that the files are too.
    Raises NotFound when the manifest of a tree is not stored.
    """
    if task.solution not in known:
        yield task.solution
    for tree in trees(task):
        if tree in known:
            continue
        for _, entry in get_json(blobs, tree):
            content = entry.get("content")
            if content is not None and content not in known:
                yield content
        yield tree
