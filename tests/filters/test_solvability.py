"""Solvability through the real agent loop and real sandboxes; the policy is a script."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace

import pytest

from factory.agent.contract import Request, Sampling
from factory.agent.formats.chat import ChatFormat
from factory.agent.rollout import RolloutConfig
from factory.core.action import Action
from factory.core.assessment import TaskState
from factory.core.blobs import MemoryBlobs
from factory.core.errors import SandboxLost, StaleWeights, UserError
from factory.core.outcome import OutcomeKind
from factory.core.policy import PolicyVersion
from factory.core.task import Task
from filters.solvability import Assessed, SolvabilityConfig, assess
from sandboxes.contract import Backend
from tests.factory.agent.samples import VERSION, Faulty, ScriptedClient, chat_policy, tree_verifier
from tests.factory.agent.samples import task as sample

RIGHT = Action("bash", {"command": "echo hello > a.txt"})
SUBMIT = Action("submit")
CONFIG = SolvabilityConfig(
    rollout=RolloutConfig(sampling=Sampling(max_tokens=200, temperature=0.5), max_context=4096, retries=0)
)


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> ChatFormat:
    return ChatFormat(chat_policy(tmp_path_factory.mktemp("policy")))


def wanted(blobs: MemoryBlobs, content: bytes, instruction: str) -> Task:
    verifier = tree_verifier(blobs, {"a.txt": content})
    return sample(blobs, instruction=instruction, files={"a.txt": "nothing\n"}, verifier=verifier, tools=("bash", "submit"))


class Sometimes:
    """Solves every other episode, told apart by the seeds of their requests; or says what is no call."""

    def __init__(self, chat: ChatFormat, *, parse: bool = True) -> None:
        self.chat, self.parse = chat, parse
        self.first: Counter[str] = Counter()

    def __call__(self, request: Request) -> tuple[int, ...]:
        text = self.chat.tokenizer.decode(list(request.prompt), skip_special_tokens=False)
        if not self.parse:
            return (*self.chat.encode("I would rather talk."), *self.chat.stop)
        if text.count("<|im_start|>assistant\n") > 1:
            return self.chat.written(SUBMIT)
        task = "second" if "Second" in text else "first"
        self.first[task] += 1
        return self.chat.written(RIGHT if self.first[task] % 2 else SUBMIT)


def assessed(tasks: list[Task], chat: ChatFormat, backend: Backend, blobs: MemoryBlobs, **options: object) -> Assessed:
    defaults: dict[str, object] = {
        "version": VERSION,
        "n": 4,
        "seed": 1,
        "config": CONFIG,
        "client": ScriptedClient(Sometimes(chat)),
    }
    return assess(tasks, format=chat, backend=backend, blobs=blobs, **(defaults | options))  # type: ignore[arg-type]


def test_k_of_n_per_task(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    tasks = [wanted(blobs, b"hello\n", "First."), wanted(blobs, b"other\n", "Second.")]
    found = assessed([*tasks, tasks[0]], chat, backend, blobs)
    first, second = found.assessments
    assert (first.task, first.successes, first.rollouts, first.state) == (tasks[0].digest, 2, 4, TaskState.FRONTIER)
    assert (second.task, second.successes, second.rollouts, second.state) == (tasks[1].digest, 0, 4, TaskState.TOO_HARD)
    assert (first.line, first.policy, first.temperature, first.backend) == ("scripted", "5" * 64, 0.5, "bubblewrap")
    assert first.image == backend.resolve("python-3.11").digest and first.unparsed == first.masked == 0
    assert len(found.trajectories) == 8 and found.masked_share == 0 and found.invalid == {}
    assert len({trajectory.seed for trajectory in found.trajectories}) == 8
    assert len({(trajectory.group, trajectory.member) for trajectory in found.trajectories}) == 8


def test_a_policy_that_cannot_call_is_told_apart(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    client = ScriptedClient(Sometimes(chat, parse=False))
    [found] = assessed([wanted(blobs, b"hello\n", "First.")], chat, backend, blobs, client=client, n=3).assessments
    assert (found.successes, found.rollouts, found.unparsed) == (0, 3, 3)


def test_masked_rollouts_are_drawn_anew_and_counted_apart(
    chat: ChatFormat, backend: Backend, blobs: MemoryBlobs, caplog: pytest.LogCaptureFixture
) -> None:
    faulty = Faulty(backend, open=[SandboxLost("gone")])
    with caplog.at_level(logging.WARNING, "filters.solvability"):
        found = assessed([wanted(blobs, b"hello\n", "First.")], chat, faulty, blobs)
    [one] = found.assessments
    assert (one.rollouts, one.masked) == (4, 1) and len(found.trajectories) == 5
    assert found.masked_share == pytest.approx(0.2) and "20 % of the rollouts" in caplog.text
    kinds = Counter(trajectory.outcome.kind for trajectory in found.trajectories)
    assert kinds == {OutcomeKind.SCORED: 4, OutcomeKind.MASKED: 1}
    masked = next(trajectory for trajectory in found.trajectories if trajectory.outcome.kind is OutcomeKind.MASKED)
    assert masked.seed not in {trajectory.seed for trajectory in found.trajectories if trajectory is not masked}


def test_resampling_is_bounded(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    faulty = Faulty(backend, open=[SandboxLost("gone")] * 100)
    always = ScriptedClient(lambda request: chat.written(RIGHT))
    [one] = assessed([wanted(blobs, b"hello\n", "First.")], chat, faulty, blobs, client=always, n=2).assessments
    assert (one.rollouts, one.masked, one.state) == (0, 4, TaskState.UNASSESSED)


def test_seeds_name_the_draws(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    task = wanted(blobs, b"hello\n", "First.")
    draws = [[one.seed for one in assessed([task], chat, backend, blobs, seed=seed, n=2).trajectories] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_what_is_refused(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    other: PolicyVersion = replace(VERSION, weights="6" * 64)
    with pytest.raises(StaleWeights, match="scripted@555555555555"):
        assessed([], chat, backend, blobs, version=other)
    with pytest.raises(UserError, match="at least one rollout"):
        assessed([], chat, backend, blobs, n=0)
    assert assessed([], chat, backend, blobs).assessments == ()
