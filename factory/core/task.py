"""Tasks: what an agent is asked, where, and how the result is judged. Immutable, named by digest."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from factory.core.blobs import BlobStore, get_json, put_json
from factory.core.digest import Digest, Json, digest_of
from factory.core.errors import UserError

SCHEME = 1
"""Version of the manifest's form; part of every digest."""

REPOSITORY = "repository:"
"""How the split key of a repository begins."""

_UNSEEN = frozenset({"Cf", "Mn", "Me"})
"""Unicode categories of format characters and marks: they set a name apart for programs, not for people."""


class TaskKind(StrEnum):
    """The kinds of task that generators make."""

    REPOSITORY = "repository"
    TERMINAL = "terminal"
    DATABASE = "database"
    TOOLWORLD = "toolworld"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one episode may use. Integers only: they are part of the task's identity."""

    memory_bytes: int = 512 << 20
    """Address space of any one process, bytes; all processes together may hold a quarter more."""
    processes: int = 64
    """Processes and threads alive at once."""
    disk_bytes: int = 64 << 20
    """All that the episode may write, bytes."""
    file_bytes: int = 32 << 20
    """The largest single file, bytes."""
    open_files: int = 256
    """Open file descriptors of any one process."""
    output_bytes: int = 4096
    """The largest observation, bytes; head and tail are kept."""
    command_ms: int = 10_000
    """Wall time of one command, milliseconds."""
    episode_ms: int = 300_000
    """Wall time of one episode in the sandbox, milliseconds."""
    turns: int = 8
    """Actions in one episode."""
    tokens: int = 4096
    """Tokens of one episode, prompt and observations included."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A read-only tree that the environment offers at an absolute path (dependencies, for one)."""

    path: str
    tree: Digest


@dataclass(frozen=True, kw_only=True)
class EnvironmentSpec:
    """What a task runs in."""

    image: str = "python-3.11"
    """Name of the runtime; each backend resolves it to something with a digest of its own."""
    files: Digest
    """Tree that stands in the working directory at reset."""
    mounts: tuple[Mount, ...] = ()
    """Read-only trees; the one with the dependency lock's content among them."""
    tools: tuple[str, ...] = ("bash", "submit")
    limits: Limits = field(default_factory=Limits)
    clock: str = "real"
    """`real`, or `frozen:<ISO 8601 instant>`."""
    timezone: str = "UTC"
    locale: str = "C.UTF-8"
    umask: int = 0o022
    hash_seed: int = 0
    network: str = "none"
    cores: int = 0
    """Processor cores that programs see; 0: those of the machine. Left out of the manifest when 0."""


@dataclass(frozen=True, kw_only=True)
class VerifierSpec:
    """A self-contained bundle (a file tree with `verify.py` at its root) and its own limits."""

    bundle: Digest
    wall_ms: int = 20_000
    memory_bytes: int = 1 << 30
    processes: int = 64


@dataclass(frozen=True, kw_only=True)
class Task:
    """An instruction, an environment, two verifiers and a reference solution."""

    kind: TaskKind
    instruction: str
    environment: EnvironmentSpec
    verifier: VerifierSpec
    held_out: VerifierSpec | None
    solution: Digest
    """Blob of the reference actions (`Demonstration.manifest`)."""

    def manifest(self) -> dict[str, Json]:
        """Canonical JSON of the content; provenance, names, status, scores and splits stay outside."""
        value = asdict(self)
        value["kind"] = self.kind.value
        if self.environment.cores == 0:  # names given before there was this field stay as they are
            del value["environment"]["cores"]
        return {"scheme": SCHEME, **value}

    @property
    def digest(self) -> Digest:
        """The task's name: SHA-256 of its manifest."""
        return digest_of(self.manifest())

    def save(self, blobs: BlobStore) -> Digest:
        """Store the manifest and return the digest."""
        return put_json(blobs, self.manifest())

    @classmethod
    def load(cls, blobs: BlobStore, digest: Digest) -> Task:
        """Read a task by digest. Raises NotFound, or ValueError for an unknown scheme."""
        return cls.from_manifest(get_json(blobs, digest))

    @classmethod
    def from_manifest(cls, value: dict[str, Any]) -> Task:
        """Rebuild a task. Raises ValueError when the scheme is not this version's."""
        if value["scheme"] != SCHEME:
            raise ValueError(f"task scheme {value['scheme']} is not {SCHEME}")
        environment = dict(value["environment"])
        environment["limits"] = Limits(**environment["limits"])
        environment["mounts"] = tuple(Mount(**mount) for mount in environment["mounts"])
        environment["tools"] = tuple(environment["tools"])
        return cls(
            kind=TaskKind(value["kind"]),
            instruction=value["instruction"],
            environment=EnvironmentSpec(**environment),
            verifier=VerifierSpec(**value["verifier"]),
            held_out=None if value["held_out"] is None else VerifierSpec(**value["held_out"]),
            solution=value["solution"],
        )


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a task came from. Recorded beside it, with a digest of its own."""

    generator: str
    generator_version: str
    seed: int
    operator: str | None = None
    """Repository: the operator; synthesized tasks: None."""
    site: str | None = None
    """Repository: `path:line:qualified name` of the edit."""
    source: str | None = None
    """Repository: project name and release or commit."""
    template: str | None = None
    """Synthesized tasks: the ordered signature of skills, `skill+skill`."""
    parameters: dict[str, Json] = field(default_factory=dict)
    """Everything else that was drawn, slot values among it. No floats."""

    def manifest(self) -> dict[str, Json]:
        return asdict(self)

    @property
    def digest(self) -> Digest:
        return digest_of(self.manifest())


@dataclass(frozen=True, kw_only=True)
class SplitKeys:
    """What decides which side of a split a task stands on: connected by any shared key.

    Each key is a string with its kind in front: `repository:sqlparse`, `signature:rename+count`,
    `slots:pool-3`, `cluster:<digest>`. A holdout takes connected components whole. Those of
    repositories are in the one form that `repository_key` gives.
    """

    keys: tuple[str, ...]


def repository_key(name: str) -> str:
    """The split key of the repository that `name` means: one key for every spelling of it.

    NFKC, lower case, without format characters and marks, `.git` and what is not a letter or digit of ASCII at either
    end of a path segment left out, any other run of such characters one `-`. Owners stay, with a single `/` after each.
    Idempotent after the prefix. Raises UserError when nothing is left.

    >>> repository_key("Zope/zope.interface.git")
    'repository:zope/zope-interface'
    """
    folded = unicodedata.normalize("NFKC", name).lower()
    seen = "".join(letter for letter in folded if unicodedata.category(letter) not in _UNSEEN)
    bare = re.sub(r"(?:\.git[^a-z0-9]*)+$", "", seen)
    segments = (re.sub(r"[^a-z0-9]+", "-", segment).strip("-") for segment in bare.split("/"))
    path = "/".join(filter(None, segments))
    if not path:
        raise UserError("repository", name, "a name with a letter a-z or a digit in it")
    return REPOSITORY + path


def canonical_key(key: str) -> str:
    """A split key with its repository's name in canonical form; keys of other kinds as they are. Raises UserError."""
    return repository_key(key.removeprefix(REPOSITORY)) if key.startswith(REPOSITORY) else key


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What a generator hands on: a task, its origin, a readable name, and its split keys."""

    task: Task
    origin: Origin
    name: str
    """Short and readable: `terminal/rename+count/0017`."""
    families: tuple[str, ...]
    """Skills or operators exercised, for quotas and for the holdout of whole families."""
    keys: SplitKeys
    text: str
    """What contamination and near-duplicate checks compare: slots and solution, not the frame."""
