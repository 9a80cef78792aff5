from __future__ import annotations

import math
import threading
import time
from dataclasses import replace

import pytest

from factory.agent.contract import Completion, Request, Sampling
from factory.agent.formats.chat import ChatFormat
from factory.agent.rollout import RolloutConfig, RolloutRequest, rollout
from factory.core.action import Action, Observation
from factory.core.blobs import MemoryBlobs
from factory.core.digest import Digest
from factory.core.errors import PolicyError, SandboxError, SandboxLost
from factory.core.outcome import Check, CheckState, OutcomeKind, Termination, Verdict
from factory.core.task import Task
from factory.core.trajectory import SAMPLED, Owner, Trajectory
from sandboxes.contract import Backend
from tests.factory.agent.samples import Faulty, ScriptedClient, chat_policy, task, tree_verifier

HELLO = Action("bash", {"command": "echo hello > a.txt"})
SUBMIT = Action("submit")


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> ChatFormat:
    return ChatFormat(chat_policy(tmp_path_factory.mktemp("policy")))


def hello(blobs: MemoryBlobs, **limits: int) -> Task:
    wanted = tree_verifier(blobs, {"a.txt": b"hello\n"})
    return task(
        blobs,
        files={"a.txt": "nothing\n"},
        tools=("bash", "submit"),
        verifier=wanted,
        held_out=wanted,
        **{"tokens": 4096} | limits,
    )


def requests(wanted: Task, count: int = 1) -> list[RolloutRequest]:
    return [RolloutRequest(task=wanted, group="g", member=member, seed=100 + member) for member in range(count)]


def script(chat: ChatFormat, *turns: Action | str | list[int]) -> ScriptedClient:
    """A policy that says the same turns in every episode; text is closed with the stop id, ids are said as they are."""

    def answer(request: Request) -> tuple[int, ...]:
        turn = turns[turn_of(chat, request.prompt)]
        if isinstance(turn, Action):
            return chat.written(turn)
        return tuple(turn) if isinstance(turn, list) else (*chat.encode(turn), *chat.stop)

    return ScriptedClient(answer)


def turn_of(chat: ChatFormat, prompt: tuple[int, ...]) -> int:
    """Number of policy turns before this one."""
    text = chat.tokenizer.decode(list(prompt), skip_special_tokens=False)
    return text.count("<|im_start|>assistant\n") - 1


def run(
    chat: ChatFormat,
    backend: Backend,
    blobs: MemoryBlobs,
    client: ScriptedClient,
    wanted: list[RolloutRequest],
    **config: object,
) -> list[Trajectory]:
    sampling = Sampling(max_tokens=200, temperature=0.5)
    return rollout(
        wanted,
        client=client,
        format=chat,
        backend=backend,
        blobs=blobs,
        config=RolloutConfig(**{"sampling": sampling, "max_context": 4096} | config),
    )


def test_an_episode_is_recorded_whole(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    wanted = hello(blobs)
    client = script(chat, HELLO, "I am done.<tool_call>{}", SUBMIT)
    [made] = run(chat, backend, blobs, client, requests(wanted))
    assert made.outcome.kind is OutcomeKind.SCORED
    assert made.outcome.reason is Termination.SUBMITTED
    assert made.outcome.solved
    assert made.outcome.held_out is not None
    assert made.outcome.verify_s > 0
    assert made.reset_s > 0
    assert (made.task, made.group, made.member, made.seed) == (wanted.digest, "g", 0, 100)
    assert made.policies == (client.version.name,)
    assert (made.temperature, made.backend) == (0.5, "bubblewrap")
    assert made.image == backend.resolve("python-3.11").digest
    assert [turn.action for turn in made.turns] == [HELLO, None, SUBMIT]
    assert [turn.finish for turn in made.turns] == ["stop"] * 3
    assert made.turns[0].environment_s > 0
    parts = made.components
    assert parts is not None
    assert (parts.outcome, parts.progress, parts.validity, parts.calls) == (1.0, 1.0, pytest.approx(2 / 3), 2)
    assert parts.tokens == sum(owner in SAMPLED for owner in made.tokens.owners)
    told = [id for id, owner in zip(made.tokens.ids, made.tokens.owners, strict=True) if owner is Owner.INJECTED_ERROR]
    assert chat.tokenizer.decode(told).startswith("no </tool_call> after <tool_call>. Answer with ")


def test_the_learner_sees_the_ids_that_were_sampled(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    spelled = [
        id for byte in '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>' for id in chat.encode(byte)
    ]
    client = script(chat, [*spelled, *chat.stop], SUBMIT)
    [made] = run(chat, backend, blobs, client, requests(hello(blobs)))
    asked = [batch[0].prompt for batch in client.batches]
    assert made.turns[0].action == Action("bash", {"command": "ls"})
    assert made.tokens.ids[: len(asked[1])] == asked[1]
    assert asked[1][: len(asked[0]) + len(spelled)] == asked[0] + tuple(spelled)
    for turn, prompt in zip(made.turns, asked, strict=True):
        assert (turn.start, made.tokens.ids[: turn.start]) == (len(prompt), prompt)
        assert set(made.tokens.logprobs[turn.start : turn.end]) == {-0.5}
    for owner, logprob in zip(made.tokens.owners, made.tokens.logprobs, strict=True):
        assert (owner in SAMPLED) == (not math.isnan(logprob))


@pytest.mark.parametrize(
    ("turns", "limits", "config", "reason", "solved"),
    [
        ([HELLO, SUBMIT], {}, {}, Termination.SUBMITTED, True),
        ([HELLO, HELLO], {"turns": 2}, {}, Termination.TURN_LIMIT, True),
        ([HELLO, "no call"], {}, {"invalid_calls": "end"}, Termination.PARSER_REJECTION, True),
        ([HELLO, Action("fly")], {}, {"invalid_calls": "end"}, Termination.INVALID_TOOL_CALL, True),
        ([HELLO, "no call"], {"turns": 2}, {}, Termination.TURN_LIMIT, True),
        ([HELLO, Action("fly"), SUBMIT], {}, {}, Termination.SUBMITTED, True),
        ([HELLO, Action("bash", {"command": "sleep 9"})], {"episode_ms": 500}, {}, Termination.EPISODE_TIME_LIMIT, True),
        ([Action("bash", {"command": "sleep 9"})], {"episode_ms": 500}, {}, Termination.EPISODE_TIME_LIMIT, False),
        ([HELLO, "word " * 200], {}, {}, Termination.TOKEN_LIMIT, True),
        (["word " * 200], {}, {}, Termination.TOKEN_LIMIT, False),
    ],
)
def test_every_end_has_its_reason_and_is_graded(
    chat: ChatFormat,
    backend: Backend,
    blobs: MemoryBlobs,
    turns: list[Action | str],
    limits: dict[str, int],
    config: dict[str, object],
    reason: Termination,
    solved: bool,
) -> None:
    [made] = run(chat, backend, blobs, script(chat, *turns), requests(hello(blobs, **limits)), **config)
    assert (made.outcome.kind, made.outcome.reason) == (OutcomeKind.SCORED, reason)
    assert made.outcome.solved is solved
    if reason is Termination.TOKEN_LIMIT:
        assert made.extra["token_limit"] == "turn"


@pytest.mark.parametrize("limit", ["episode", "context"])
@pytest.mark.parametrize(("room", "turns"), [(0, 1), (3, 2)])
def test_an_overflow_between_and_inside_turns_ends_the_episode(
    chat: ChatFormat, backend: Backend, blobs: MemoryBlobs, limit: str, room: int, turns: int
) -> None:
    wanted = hello(blobs)
    most = len(chat.opening(wanted)) + len(chat.written(HELLO)) + len(chat.observation(Observation(text=""))) + room
    wanted = hello(blobs, tokens=most) if limit == "episode" else wanted
    [made] = run(
        chat, backend, blobs, script(chat, HELLO, SUBMIT), requests(wanted), max_context=most if limit == "context" else 4096
    )
    assert (made.outcome.kind, made.outcome.reason) == (OutcomeKind.SCORED, Termination.TOKEN_LIMIT)
    assert made.outcome.solved
    assert made.extra["token_limit"] == limit
    assert len(made.turns) == turns
    assert len(made.tokens) == most
    assert made.turns[-1].finish == ("length" if room else "stop")


def test_batches_are_lock_step_and_seeds_are_their_own(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    quick, slow = hello(blobs), hello(blobs, turns=3)
    wanted = [*requests(quick, 3), RolloutRequest(task=slow, group="h", member=0, seed=7)]
    slower = Action("bash", {"command": "sleep 0.2"})

    def play() -> tuple[ScriptedClient, list[Trajectory]]:
        def answer(request: Request) -> tuple[int, ...]:
            turn = turn_of(chat, request.prompt)
            return chat.written([slower, HELLO, SUBMIT][turn] if request.seed % 2 else [HELLO, slower, SUBMIT][turn])

        client = ScriptedClient(answer)
        return client, run(chat, backend, blobs, client, wanted, workers=3)

    first, made = play()
    second, again = play()
    assert first.batches == second.batches
    assert [len(batch) for batch in first.batches] == [4, 4, 4]
    seeds = [request.seed for batch in first.batches for request in batch]
    assert len(set(seeds)) == len(seeds)
    assert [trajectory.tokens.ids for trajectory in made] == [trajectory.tokens.ids for trajectory in again]
    assert [trajectory.member for trajectory in made] == [0, 1, 2, 0]


def test_waves_bound_how_many_live_at_once(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    client = script(chat, SUBMIT)
    made = run(chat, backend, blobs, client, requests(hello(blobs), 5), episodes=2)
    assert [len(batch) for batch in client.batches] == [2, 2, 1]
    assert [trajectory.member for trajectory in made] == [0, 1, 2, 3, 4]


def test_a_lost_sandbox_is_tried_again_from_the_beginning(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    faulty = Faulty(backend, run=[None, SandboxLost("gone")])
    [made] = run(chat, faulty, blobs, script(chat, HELLO, HELLO, SUBMIT), requests(hello(blobs)))
    assert made.outcome.solved
    assert made.extra["attempt"] == "1"
    assert len(made.turns) == 3
    assert all(sandbox.closed for sandbox in faulty.opened)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("method", ["open", "run", "export", "verify"])
def test_what_keeps_failing_is_masked_and_kept(
    chat: ChatFormat, backend: Backend, blobs: MemoryBlobs, method: str, elsewhere: bool
) -> None:
    faulty = Faulty(backend, **{method: [SandboxError("broken")] * 9})
    wanted = requests(hello(blobs), 2)
    client = script(chat, HELLO, SUBMIT)
    client.elsewhere = elsewhere
    made = run(chat, faulty, blobs, client, wanted, retries=2)
    assert [trajectory.outcome.kind for trajectory in made] == [OutcomeKind.MASKED] * 2
    assert {trajectory.outcome.reason for trajectory in made} == {Termination.RETRIES_EXHAUSTED}
    assert all("broken" in trajectory.outcome.fault and trajectory.components is None for trajectory in made)
    assert all(sandbox.closed for sandbox in faulty.opened)


def test_without_retries_the_fault_keeps_its_own_reason(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    [made] = run(
        chat, Faulty(backend, run=[SandboxLost("gone")]), blobs, script(chat, HELLO), requests(hello(blobs)), retries=0
    )
    assert (made.outcome.kind, made.outcome.reason) == (OutcomeKind.MASKED, Termination.ENVIRONMENT_LOST)


def test_a_failed_completion_masks_its_episode_alone(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    class Failing(ScriptedClient):
        def _completion(self, request: Request, stop: frozenset[int]) -> Completion:
            if request.seed == bad:
                return Completion(ids=(), logprobs=(), finish="length", error="a log-probability is not finite")
            return super()._completion(request, stop)

    client = Failing(lambda request: chat.written(SUBMIT))
    bad = -1
    run(chat, backend, blobs, client, requests(hello(blobs), 3))
    bad = client.batches[0][1].seed
    made = run(chat, backend, blobs, client, requests(hello(blobs), 3))
    assert [trajectory.outcome.kind for trajectory in made] == [OutcomeKind.SCORED, OutcomeKind.MASKED, OutcomeKind.SCORED]
    assert "not finite" in made[1].outcome.fault


def test_sandboxes_open_while_a_policy_elsewhere_samples(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    """As many as there are episodes, before the first completion is there; none is left, and the trajectories are the same."""
    made = []
    for elsewhere in (True, False):
        faulty = Faulty(backend)
        before: list[int] = []

        def answer(
            request: Request, faulty: Faulty = faulty, before: list[int] = before, wanted: int = 3 * elsewhere
        ) -> tuple[int, ...]:
            limit = time.monotonic() + 20
            while len(faulty.opened) < wanted and time.monotonic() < limit:
                time.sleep(0.01)
            before.append(len(faulty.opened))
            return chat.written((HELLO, SUBMIT)[turn_of(chat, request.prompt)])

        client = ScriptedClient(answer, elsewhere=elsewhere)
        made.append(run(chat, faulty, blobs, client, requests(hello(blobs), 3)))
        assert before[0] == 3 * elsewhere
        assert len([one for one in faulty.opened if not one.verifies]) == 3
        assert all(one.closed for one in faulty.opened)
    ahead, behind = (
        [(one.tokens.ids, one.outcome.verdict and one.outcome.verdict.checks, one.outcome.reason) for one in some]
        for some in made
    )
    assert ahead == behind and all(one.outcome.solved for one in made[0])


def test_what_was_opened_for_nothing_is_closed(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs) -> None:
    faulty = Faulty(backend)
    client = script(chat, SUBMIT)
    client.elsewhere = True
    made = run(chat, faulty, blobs, client, requests(hello(blobs), 4))
    assert all(one.outcome.reason is Termination.SUBMITTED and one.reset_s == 0 for one in made)
    assert all(one.closed for one in faulty.opened)
    assert all(ended(thread) for thread in threading.enumerate() if thread.name == "prefetch")


def ended(thread: threading.Thread) -> bool:
    thread.join(10)
    return not thread.is_alive()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_client_that_fails_closes_every_sandbox(
    chat: ChatFormat, backend: Backend, blobs: MemoryBlobs, elsewhere: bool
) -> None:
    faulty = Faulty(backend)

    def answer(request: Request) -> tuple[int, ...]:
        if turn_of(chat, request.prompt) == 1:
            raise PolicyError("the engine is gone")
        return chat.written(HELLO)

    with pytest.raises(PolicyError, match="gone"):
        run(chat, faulty, blobs, ScriptedClient(answer, elsewhere=elsewhere), requests(hello(blobs), 2))
    assert len(faulty.opened) == 2
    assert all(sandbox.closed for sandbox in faulty.opened)


@pytest.mark.parametrize(("share", "runs"), [(True, 2), (False, 5)])
def test_equal_ends_share_a_verdict(chat: ChatFormat, backend: Backend, blobs: MemoryBlobs, share: bool, runs: int) -> None:
    ran: list[Digest] = []

    def grade(backend, blobs, environment, verifiers, *, start, end):
        ran.append(end)
        passed = (Check("a", CheckState.PASSED),)
        return tuple(Verdict(checks=passed, verifier=verifier.bundle, start=start, end=end) for verifier in verifiers)

    wanted = replace(hello(blobs), held_out=None)
    members = requests(wanted, 5)

    def answer(request: Request) -> tuple[int, ...]:
        first = turn_of(chat, request.prompt) == 0
        return chat.written(HELLO if first and request.seed in odd else SUBMIT)

    probe = ScriptedClient(lambda request: chat.written(SUBMIT))
    rollout(
        members,
        client=probe,
        format=chat,
        backend=backend,
        blobs=blobs,
        config=RolloutConfig(max_context=4096, sampling=Sampling(max_tokens=200)),
        grade=grade,
    )
    odd = {request.seed for request in probe.batches[0][::2]}
    ran.clear()
    config = RolloutConfig(max_context=4096, sampling=Sampling(max_tokens=200), share_verdicts=share)
    made = rollout(
        members, client=ScriptedClient(answer), format=chat, backend=backend, blobs=blobs, config=config, grade=grade
    )
    assert len(ran) == runs
    ends = [trajectory.outcome.verdict.end for trajectory in made if trajectory.outcome.verdict]
    assert ends[0] == ends[2] == ends[4] != ends[1] == ends[3] == wanted.environment.files
