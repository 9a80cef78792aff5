"""Parts that the tests of the agent share: a tokenizer with ambiguous merges, tasks, a scripted client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from factory.agent.contract import Completion, Request
from factory.agent.formats.chat import IM_END, IM_START
from factory.core.action import Action
from factory.core.blobs import BlobStore, put_json
from factory.core.demonstration import Demonstration
from factory.core.files import FileTree
from factory.core.policy import PolicyVersion
from factory.core.task import EnvironmentSpec, Limits, Mount, Task, TaskKind, VerifierSpec
from sandboxes.contract import Backend, Capability, ResolvedImage, Sandbox, Snapshot
from sandboxes.verification.bundles import bundle

MERGES = ["<|", "|>", "im", "to", "ol", "tool", "\u010a<", "<t", "_c", "al", "aa", "aaa", "ab", "ba", '":', '"}', "Ġl", "ls"]
"""Merged tokens beside the 256 bytes: much text has several spellings, and tags can begin inside a token."""

VERSION = PolicyVersion(line="scripted", weights="5" * 64)


def chat_policy(folder: Path) -> Path:
    """A policy folder with a byte-level tokenizer in which most text has several spellings."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate(alphabet)}
    merges: list[tuple[str, str]] = []
    for merged in MERGES:
        left = max(cut for cut in range(1, len(merged)) if merged[:cut] in vocabulary and merged[cut:] in vocabulary)
        merges.append((merged[:left], merged[left:]))
        vocabulary[merged] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>"), AddedToken(IM_START), AddedToken(IM_END)])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "policy.json").write_text(json.dumps({"format": "chat"}))
    return folder


def task(
    blobs: BlobStore,
    *,
    instruction: str = "Say hello.",
    files: dict[str, bytes | str] | None = None,
    tools: tuple[str, ...] = ("bash", "edit", "sql", "submit"),
    verifier: VerifierSpec | None = None,
    held_out: VerifierSpec | None = None,
    **limits: int,
) -> Task:
    """A task over `files`; without a verifier it names one that does not exist."""
    solution = Demonstration((Action("submit"),))
    return Task(
        kind=TaskKind.TERMINAL,
        instruction=instruction,
        environment=EnvironmentSpec(files=FileTree.of(blobs, files or {}).save(blobs), tools=tools, limits=Limits(**limits)),
        verifier=verifier or VerifierSpec(bundle="0" * 64),
        held_out=held_out,
        solution=put_json(blobs, solution.manifest()),
    )


class ScriptedClient:
    """Answers each request with the ids that `answer` gives for it; every sampled token has log-probability -0.5."""

    def __init__(self, answer: Callable[[Request], Sequence[int]], *, elsewhere: bool = False) -> None:
        self.answer, self.elsewhere = answer, elsewhere
        self.version = VERSION
        self.batches: list[list[Request]] = []

    def complete(self, requests: Sequence[Request], *, temperature: float, stop: frozenset[int]) -> list[Completion]:
        self.batches.append(list(requests))
        return [self._completion(request, stop) for request in requests]

    def _completion(self, request: Request, stop: frozenset[int]) -> Completion:
        ids = tuple(self.answer(request))[: request.max_tokens]
        return Completion(ids=ids, logprobs=(-0.5,) * len(ids), finish="stop" if ids[-1] in stop else "length")

    def score(self, sequences: Sequence[tuple[int, ...]], *, temperature: float) -> list[list[float]]:
        return [[-0.5] * (len(ids) - 1) for ids in sequences]


def tree_verifier(blobs: BlobStore, contents: dict[str, bytes], view: str = "whole") -> VerifierSpec:
    """A verifier that wants exactly the files `contents` to stand in the working directory."""
    tree = {
        path: {
            "kind": "file",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "executable": False,
            "loose": False,
        }
        for path, data in contents.items()
    }
    spec = {"view": view, "tree": tree, "steps": [{"name": "files", "paths": sorted(contents)}]}
    return VerifierSpec(bundle=bundle(blobs, checker="files", spec=spec))


class Faulty:
    """A back end whose sandboxes fail as `plan` says: for each method the faults of its calls in order (None: none)."""

    def __init__(self, backend: Backend, **plan: list[Exception | None]) -> None:
        self.backend, self.name, self.plan = backend, backend.name, plan
        self.opened: list[FaultySandbox] = []

    def meet(self, method: str) -> None:
        faults = self.plan.get(method)
        fault = faults.pop(0) if faults else None
        if fault is not None:
            raise fault

    def resolve(self, image: str) -> ResolvedImage:
        return self.backend.resolve(image)

    def open(
        self, spec: EnvironmentSpec, blobs: BlobStore, mounts: tuple[Mount, ...] = (), *, snapshot: Snapshot | None = None
    ) -> FaultySandbox:
        if not mounts:
            self.meet("open")
        self.opened.append(FaultySandbox(self.backend.open(spec, blobs, mounts, snapshot=snapshot), self, bool(mounts)))
        return self.opened[-1]

    def capabilities(self) -> list[Capability]:
        return self.backend.capabilities()

    def close(self) -> None:
        pass


class FaultySandbox:
    """A real sandbox behind the faults of its back end's plan; a verifier's sandbox meets those of `verify`."""

    def __init__(self, sandbox: Sandbox, faulty: Faulty, verifier: bool) -> None:
        self._sandbox, self._faulty, self.verifies = sandbox, faulty, verifier
        self.image = sandbox.image
        self.closed = False

    def __getattr__(self, name: str) -> object:
        self._faulty.meet("verify" if self.verifies else name)
        return getattr(self._sandbox, name)

    def close(self) -> None:
        self.closed = True
        self._sandbox.close()
        if not self.verifies:
            self._faulty.meet("close")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
