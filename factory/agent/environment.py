"""An environment: one task in one sandbox, from reset to verdict.

The sandbox is opened at the first action that needs it; an episode that never touches it ends in
the tree in which it began and is graded on that. Its end is tri-state: the policy's own limits are
scored, failures of the infrastructure and unknown faults are masked, a broken task is invalid.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from factory.agent.tools import TOOLS, problem
from factory.core.action import Action, Observation, ObservationRole
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import FactoryError, InvalidTask, PolicyError, SandboxError, VerifierError, VerifierTimeLimit
from factory.core.files import FileTree
from factory.core.outcome import Outcome, OutcomeKind, Termination, Verdict
from factory.core.task import EnvironmentSpec, Task, VerifierSpec
from sandboxes.contract import Backend, Sandbox, Snapshot
from sandboxes.export import canonical
from sandboxes.verification.grade import grade

logger = logging.getLogger(__name__)


class Grade(Protocol):
    """Runs verifiers on what an episode left (`sandboxes.verification.grade.grade`).

    Raises VerifierError, VerifierTimeLimit, SandboxError or InvalidTask.
    """

    def __call__(
        self,
        backend: Backend,
        blobs: BlobStore,
        environment: EnvironmentSpec,
        verifiers: Sequence[VerifierSpec],
        *,
        start: Digest,
        end: Digest,
    ) -> tuple[Verdict, ...]: ...


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one action did."""

    observation: Observation | None
    """None when the action ended the episode by itself (`submit`)."""
    over: bool
    reason: Termination | None = None
    """Why the episode is over; None while it is not."""
    valid: bool = True
    """Whether the action named an offered tool and fitted its schema."""


class Environment:
    """One episode's world. Not safe for several threads at once."""

    def __init__(self, task: Task, backend: Backend, blobs: BlobStore, *, grade: Grade = grade) -> None:
        """`grade` runs the verifiers; by default they run in fresh sandboxes of `backend`."""
        self.task, self.backend, self.blobs = task, backend, blobs
        self._grade = grade
        self._sandbox: Sandbox | None = None
        self._image: Digest = ""
        self.seed = 0
        self.turns = 0
        self.reset_s = 0.0
        """Seconds that opening the sandbox took."""
        self.used_s = 0.0
        """Seconds spent in the sandbox so far; what `episode_ms` limits."""

    def reset(self, seed: int) -> None:
        """Begin a new episode in the task's own start tree. What the policy reads first is the task's instruction."""
        self.close()
        self.seed, self.turns, self.reset_s, self.used_s = seed, 0, 0.0, 0.0

    @property
    def image(self) -> Digest:
        """Digest of the resolved image. Raises ImageError when the back end does not have it."""
        if not self._image:
            self._image = self.backend.resolve(self.task.environment.image).digest
        return self._image

    def step(self, action: Action) -> Step:
        """Take one action. An invalid one costs its turn and is answered in the ERROR role. Raises SandboxError."""
        fault = problem(self.task.environment.tools, action)
        if fault:
            return self.refuse(fault)
        self.turns += 1
        tool = TOOLS[action.tool]
        if tool.run is None:
            return Step(observation=None, over=True, reason=Termination.SUBMITTED)
        sandbox = self._open()
        limits = self.task.environment.limits
        left_ms = max(1, limits.episode_ms - round(self.used_s * 1000))
        started = time.perf_counter()
        try:
            allowed = replace(limits, command_ms=min(limits.command_ms, left_ms), episode_ms=left_ms)
            observation = tool.run(sandbox, action.arguments, allowed)
        finally:
            self.used_s += time.perf_counter() - started
        if self.used_s * 1000 >= limits.episode_ms:
            return Step(observation=observation, over=True, reason=Termination.EPISODE_TIME_LIMIT)
        return self._turn(observation, valid=True)

    def refuse(self, text: str) -> Step:
        """Spend a turn on something that is no action; `text` tells the policy why."""
        self.turns += 1
        return self._turn(Observation(text=text, role=ObservationRole.ERROR), valid=False)

    def _turn(self, observation: Observation, *, valid: bool) -> Step:
        over = self.turns >= self.task.environment.limits.turns
        return Step(observation=observation, over=over, reason=Termination.TURN_LIMIT if over else None, valid=valid)

    def _open(self) -> Sandbox:
        if self._sandbox is None:
            started = time.perf_counter()
            sandbox = self.backend.open(self.task.environment, self.blobs)
            try:
                _check_start(sandbox, self.blobs, self.task.environment.files)
            except BaseException:
                sandbox.close()
                raise
            self._sandbox, self._image = sandbox, sandbox.image.digest
            self.reset_s = time.perf_counter() - started
        return self._sandbox

    def snapshot(self) -> Snapshot:
        """The sandbox's present state; the episode goes on. Raises SandboxError."""
        return Snapshot(tree=self.task.environment.files) if self._sandbox is None else self._sandbox.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to `snapshot`, the shell's state included. Turns and time that were used stay used. Raises SandboxError."""
        self._open().restore(snapshot)

    def finish(self, reason: Termination, *, held_out: bool = True) -> Outcome:
        """End the episode for `reason`: kill its processes, export its files, grade them. Never raises for a fault.

        Without `held_out` the held-out verifier is not run. A fault of either verifier masks the
        episode: what can not be judged in full is not judged.
        """
        started = time.perf_counter()

        def graded() -> Outcome:
            end = self._end()
            task = self.task
            verifiers = [task.verifier, *([task.held_out] if held_out and task.held_out is not None else [])]
            spec = task.environment
            verdict, *second = self._grade(self.backend, self.blobs, spec, verifiers, start=spec.files, end=end)
            use = None if self._sandbox is None else self._sandbox.usage()
            other = second[0] if second else None
            return Outcome(kind=OutcomeKind.SCORED, reason=reason, verdict=verdict, held_out=other, use=use)

        return replace(guarded(graded, Termination.VERIFIER_FAILED), verify_s=time.perf_counter() - started)

    def _end(self) -> Digest:
        if self._sandbox is None:
            return self.task.environment.files
        self._sandbox.stop()
        return self._sandbox.export()

    def close(self) -> None:
        """Remove the sandbox. Idempotent; `reset` begins anew."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.close()


def guarded(attempt: Callable[[], Outcome], unknown: Termination) -> Outcome:
    """The boundary at which faults become outcomes: every exception of `attempt` masks, a broken task is invalid.

    `unknown` is the reason given to an exception that no boundary expects.
    """
    try:
        return attempt()
    except Exception as error:  # noqa: BLE001 (the boundary: an unknown fault is masked, never a reward)
        return fault_outcome(error, unknown)


def fault_outcome(error: Exception, unknown: Termination) -> Outcome:
    """The outcome of an episode that met `error`."""
    fault = f"{type(error).__name__}: {error}"
    if isinstance(error, InvalidTask):
        return Outcome(kind=OutcomeKind.INVALID_TASK, reason=Termination.VERIFIER_FAILED, fault=fault)
    reason = next((reason for kind, reason in _REASONS if isinstance(error, kind)), unknown)
    if not isinstance(error, FactoryError):
        logger.warning("unknown fault, the episode is masked", exc_info=error)
    return Outcome(kind=OutcomeKind.MASKED, reason=reason, fault=fault)


_REASONS: tuple[tuple[type[Exception], Termination], ...] = (
    (VerifierTimeLimit, Termination.VERIFIER_TIME_LIMIT),
    (VerifierError, Termination.VERIFIER_FAILED),
    (SandboxError, Termination.ENVIRONMENT_LOST),
    (PolicyError, Termination.RETRIES_EXHAUSTED),
)


def _check_start(sandbox: Sandbox, blobs: BlobStore, files: Digest) -> None:
    """Raise SandboxError unless the new sandbox holds exactly the tree `files`."""
    found = sandbox.export()
    if found != files and found != canonical(FileTree.load(blobs, files)).digest:
        raise SandboxError(f"reset gave tree {found}, not {files}")


def replay(
    task: Task,
    actions: Sequence[Action],
    backend: Backend,
    blobs: BlobStore,
    *,
    held_out: bool = True,
    grade: Grade = grade,
    watch: Callable[[Step], None] = lambda step: None,
) -> Outcome:
    """The outcome of taking `actions` in a fresh environment: the reference solution, or none for the no-op.

    `watch` sees every step.

    Actions after the end of the episode are not taken; where they run out the work counts as handed in. A sandbox that
    cannot be removed is logged, the outcome stands.
    """
    environment = Environment(task, backend, blobs, grade=grade)

    def taken() -> Outcome:
        reason = None
        for action in actions:
            step = environment.step(action)
            watch(step)
            if step.over:
                reason = step.reason
                break
        return environment.finish(reason or Termination.SUBMITTED, held_out=held_out)

    try:
        return guarded(taken, Termination.TOOL_FAILURE)
    finally:
        try:
            environment.close()
        except FactoryError:
            logger.exception("a sandbox was not removed")
