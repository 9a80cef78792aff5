"""Parts that the tests of the agent share: a tokenizer with ambiguous merges, tasks, a scripted client."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from factory.agent.contract import Completion, Request
from factory.agent.formats.chat import IM_END, IM_START
from factory.core.action import Action
from factory.core.blobs import BlobStore, put_json
from factory.core.demonstration import Demonstration
from factory.core.files import FileTree
from factory.core.policy import PolicyVersion
from factory.core.task import EnvironmentSpec, Limits, Task, TaskKind, VerifierSpec

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

    def __init__(self, answer: Callable[[Request], Sequence[int]]) -> None:
        self.answer = answer
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
