from __future__ import annotations

from dataclasses import replace

import pytest

from factory.agent.environment import Environment, fault_outcome, replay
from factory.core.action import Action, ObservationRole
from factory.core.blobs import MemoryBlobs
from factory.core.digest import Digest
from factory.core.errors import (
    ImageError,
    InvalidTask,
    NotFound,
    PolicyError,
    SandboxError,
    SandboxLost,
    VerifierError,
    VerifierTimeLimit,
)
from factory.core.files import FileTree
from factory.core.outcome import OutcomeKind, Termination
from factory.core.task import Task, VerifierSpec
from sandboxes.contract import Backend
from tests.factory.agent.samples import Faulty, task, tree_verifier

HELLO = Action("bash", {"command": "echo hello > a.txt"})
SUBMIT = Action("submit")


def hello(blobs: MemoryBlobs, held_out: bytes = b"hello\n", **limits: int) -> Task:
    """Wants a.txt to hold a greeting."""
    return task(
        blobs,
        files={"a.txt": "nothing\n"},
        verifier=tree_verifier(blobs, {"a.txt": b"hello\n"}),
        held_out=tree_verifier(blobs, {"a.txt": held_out}, view="asked"),
        **limits,
    )


def test_an_episode_from_reset_to_verdict(backend: Backend, blobs: MemoryBlobs) -> None:
    wanted = hello(blobs, held_out=b"hallo\n")
    environment = Environment(wanted, backend, blobs)
    environment.reset(seed=1)
    step = environment.step(Action("bash", {"command": "cd /tmp; cat /workspace/a.txt"}))
    assert step.observation is not None
    assert step.observation.text == "nothing\n"
    assert (step.over, step.reason, step.valid) == (False, None, True)
    step = environment.step(Action("bash", {"command": "pwd; echo hello > /workspace/a.txt"}))
    assert step.observation is not None
    assert step.observation.text == "/tmp\n"
    assert environment.step(SUBMIT).reason is Termination.SUBMITTED
    outcome = environment.finish(Termination.SUBMITTED)
    environment.close()
    assert outcome.kind is OutcomeKind.SCORED
    assert outcome.verdict is not None
    assert outcome.verdict.passed
    assert outcome.verdict.start == wanted.environment.files
    assert outcome.verdict.end == FileTree.of(blobs, {"a.txt": "hello\n"}).digest
    assert outcome.held_out is not None
    assert not outcome.held_out.passed
    assert outcome.solved
    assert environment.image == backend.resolve("python-3.11").digest


def test_reference_and_no_op(backend: Backend, blobs: MemoryBlobs) -> None:
    wanted = hello(blobs)
    assert replay(wanted, [HELLO, SUBMIT], backend, blobs).solved
    nothing = replay(wanted, [], backend, blobs)
    assert (nothing.kind, nothing.reason, nothing.solved) == (OutcomeKind.SCORED, Termination.SUBMITTED, False)
    assert nothing.verdict is not None
    assert nothing.verdict.end == wanted.environment.files
    assert replay(wanted, [SUBMIT, HELLO], backend, blobs).solved is False
    assert replay(wanted, [HELLO], backend, blobs, held_out=False).held_out is None


def test_the_turn_limit_ends_the_episode_and_its_state_is_graded(backend: Backend, blobs: MemoryBlobs) -> None:
    look = Action("bash", {"command": "true"})
    outcome = replay(hello(blobs, turns=2), [HELLO, look, Action("bash", {"command": "rm a.txt"})], backend, blobs)
    assert (outcome.reason, outcome.solved) == (Termination.TURN_LIMIT, True)


def test_an_invalid_call_costs_its_turn_and_is_told(backend: Backend, blobs: MemoryBlobs) -> None:
    environment = Environment(hello(blobs, turns=2), backend, blobs)
    environment.reset(seed=0)
    step = environment.step(Action("fly"))
    assert step.observation is not None
    assert step.observation.role is ObservationRole.ERROR
    assert (step.over, step.valid) == (False, False)
    step = environment.refuse("that was no call")
    assert (step.over, step.reason, step.valid) == (True, Termination.TURN_LIMIT, False)
    environment.close()


def test_the_episodes_time_is_not_a_commands(backend: Backend, blobs: MemoryBlobs) -> None:
    wanted = hello(blobs, episode_ms=600, command_ms=300)
    environment = Environment(wanted, backend, blobs)
    environment.reset(seed=0)
    slow = Action("bash", {"command": "sleep 60"})
    step = environment.step(slow)
    assert step.observation is not None
    assert step.observation.timed_out
    assert not step.over
    step = environment.step(slow)
    assert (step.over, step.reason) == (True, Termination.EPISODE_TIME_LIMIT)
    outcome = environment.finish(Termination.EPISODE_TIME_LIMIT)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.SCORED, Termination.EPISODE_TIME_LIMIT)
    environment.close()


@pytest.mark.parametrize("tool", ["bash", "sql"])
def test_an_action_stopped_by_the_episodes_limit_names_no_limit_of_its_own(
    backend: Backend, blobs: MemoryBlobs, tool: str
) -> None:
    wanted = task(blobs, files={"data.db": b""}, episode_ms=500, command_ms=60_000)
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    environment = Environment(wanted, backend, blobs)
    environment.reset(seed=0)
    step = environment.step(Action(tool, {"command": "sleep 60"} if tool == "bash" else {"query": endless}))
    environment.close()
    assert (step.over, step.reason) == (True, Termination.EPISODE_TIME_LIMIT)
    assert step.observation is not None
    assert step.observation.timed_out
    assert step.observation.text.splitlines()[-1] == "[command stopped: the episode's time is over]"


def test_snapshot_and_restore_mid_episode(backend: Backend, blobs: MemoryBlobs) -> None:
    wanted = hello(blobs)
    environment = Environment(wanted, backend, blobs)
    environment.reset(seed=0)
    assert environment.snapshot().tree == wanted.environment.files
    environment.step(HELLO)
    greeted = environment.snapshot()
    environment.step(Action("bash", {"command": "rm a.txt; touch b.txt"}))
    environment.restore(greeted)
    assert environment.snapshot() == greeted
    assert environment.finish(Termination.SUBMITTED).solved
    environment.close()


def test_reset_forgets_the_earlier_episode(backend: Backend, blobs: MemoryBlobs) -> None:
    environment = Environment(hello(blobs), backend, blobs)
    for seed in range(2):
        environment.reset(seed)
        assert environment.turns == 0
        step = environment.step(Action("bash", {"command": "cat a.txt; echo changed > a.txt"}))
        assert step.observation is not None
        assert step.observation.text == "nothing\n"
    environment.close()


def test_what_runs_on_is_dead_before_grading(backend: Backend, blobs: MemoryBlobs) -> None:
    late = Action(
        "bash", {"command": "echo hello > a.txt; (while :; do echo late > a.txt; sleep 0.01; done) & sleep 0.05; true"}
    )
    environment = Environment(hello(blobs), backend, blobs)
    environment.reset(seed=0)
    environment.step(late)
    outcome = environment.finish(Termination.SUBMITTED)
    environment.close()
    assert outcome.verdict is not None
    assert outcome.verdict.end == FileTree.of(blobs, {"a.txt": "late\n"}).digest


def test_a_sandbox_that_begins_elsewhere_is_masked(backend: Backend, blobs: MemoryBlobs) -> None:
    other = FileTree.of(blobs, {"a.txt": "left over\n"}).save(blobs)

    class Stale(Faulty):
        def open(self, spec, blobs, mounts=()):
            return super().open(spec if mounts else replace(spec, files=other), blobs, mounts)

    outcome = replay(hello(blobs), [HELLO], Stale(backend), blobs)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.MASKED, Termination.ENVIRONMENT_LOST)
    assert "reset gave tree" in outcome.fault


def test_every_reset_is_checked_not_only_the_first(backend: Backend, blobs: MemoryBlobs) -> None:
    other = FileTree.of(blobs, {"a.txt": "left over\n"}).save(blobs)

    class LaterStale(Faulty):
        def open(self, spec, blobs, mounts=()):
            stale = not mounts and any(not sandbox.verifies for sandbox in self.opened)
            return super().open(replace(spec, files=other) if stale else spec, blobs, mounts)

    later = LaterStale(backend)
    assert replay(hello(blobs), [HELLO], later, blobs).solved
    outcome = replay(hello(blobs), [HELLO], later, blobs)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.MASKED, Termination.ENVIRONMENT_LOST)


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ({"open": [SandboxError("no memory")]}, Termination.ENVIRONMENT_LOST),
        ({"run": [SandboxLost("gone")]}, Termination.ENVIRONMENT_LOST),
        ({"run": [OSError("disk on fire")]}, Termination.TOOL_FAILURE),
        ({"stop": [SandboxLost("gone")]}, Termination.ENVIRONMENT_LOST),
        ({"export": [None, SandboxLost("gone")]}, Termination.ENVIRONMENT_LOST),
        ({"export": [None, RuntimeError("bug")]}, Termination.VERIFIER_FAILED),
        ({"verify": [SandboxLost("gone")]}, Termination.VERIFIER_FAILED),
        ({"verify": [None, SandboxLost("gone")]}, Termination.VERIFIER_FAILED),
        ({"verify": [RuntimeError("bug")]}, Termination.VERIFIER_FAILED),
    ],
)
def test_faults_of_the_infrastructure_are_masked(
    backend: Backend, blobs: MemoryBlobs, plan: dict[str, list[Exception | None]], reason: Termination
) -> None:
    faulty = Faulty(backend, **plan)
    task = hello(blobs)
    assert task.held_out is not None
    apart = replace(task, held_out=replace(task.held_out, wall_ms=task.held_out.wall_ms + 1))  # a sandbox for each verifier
    outcome = replay(apart, [HELLO, SUBMIT], faulty, blobs)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.MASKED, reason)
    assert outcome.fault
    assert outcome.verdict is None
    assert all(sandbox.closed for sandbox in faulty.opened)


def test_a_sandbox_that_cannot_be_removed_is_logged_and_the_outcome_stands(
    backend: Backend, blobs: MemoryBlobs, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = replay(hello(blobs), [HELLO], Faulty(backend, close=[SandboxError("the engine is busy")]), blobs)
    assert outcome.solved
    assert "not removed" in caplog.text and "the engine is busy" in caplog.text


@pytest.mark.parametrize(
    ("method", "action"),
    [
        ("read_file", Action("edit", {"path": "a.txt", "line": "1", "text": "hello"})),
        ("write_file", Action("edit", {"path": "a.txt", "line": "1", "text": "hello"})),
        ("process", Action("sql", {"query": "select 1"})),
    ],
)
def test_a_tool_whose_process_is_not_to_be_had_masks(backend: Backend, blobs: MemoryBlobs, method: str, action: Action) -> None:
    outcome = replay(hello(blobs), [action], Faulty(backend, **{method: [SandboxLost("gone")]}), blobs)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.MASKED, Termination.ENVIRONMENT_LOST)


def test_a_fault_of_the_machine_under_verifiers_that_share_a_sandbox_is_masked(backend: Backend, blobs: MemoryBlobs) -> None:
    faulty = Faulty(backend, verify=[SandboxLost("gone")])
    outcome = replay(hello(blobs), [HELLO, SUBMIT], faulty, blobs)
    assert (outcome.kind, outcome.reason, outcome.verdict) == (OutcomeKind.MASKED, Termination.VERIFIER_FAILED, None)


def test_a_missing_verifier_is_masked(backend: Backend, blobs: MemoryBlobs) -> None:
    outcome = replay(replace(hello(blobs), verifier=VerifierSpec(bundle="0" * 64)), [HELLO], backend, blobs)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.MASKED, Termination.VERIFIER_FAILED)


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (SandboxError("x"), OutcomeKind.MASKED, Termination.ENVIRONMENT_LOST),
        (ImageError("x"), OutcomeKind.MASKED, Termination.ENVIRONMENT_LOST),
        (VerifierError("x"), OutcomeKind.MASKED, Termination.VERIFIER_FAILED),
        (VerifierTimeLimit("x"), OutcomeKind.MASKED, Termination.VERIFIER_TIME_LIMIT),
        (PolicyError("x"), OutcomeKind.MASKED, Termination.RETRIES_EXHAUSTED),
        (NotFound("x"), OutcomeKind.MASKED, Termination.TOOL_FAILURE),
        (ZeroDivisionError("x"), OutcomeKind.MASKED, Termination.TOOL_FAILURE),
        (InvalidTask("x"), OutcomeKind.INVALID_TASK, Termination.VERIFIER_FAILED),
    ],
)
def test_every_fault_has_one_outcome_and_none_a_reward(error: Exception, kind: OutcomeKind, reason: Termination) -> None:
    outcome = fault_outcome(error, Termination.TOOL_FAILURE)
    assert (outcome.kind, outcome.reason, outcome.verdict) == (kind, reason, None)


def test_an_invalid_task_is_not_masked(backend: Backend, blobs: MemoryBlobs) -> None:
    def refuse(*_: object, start: Digest, end: Digest):
        raise InvalidTask("the reference fails")

    outcome = replay(hello(blobs), [HELLO], backend, blobs, grade=refuse)
    assert outcome.kind is OutcomeKind.INVALID_TASK
