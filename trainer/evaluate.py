"""Evaluation on sealed holdout tasks: pass rates with intervals over tasks, and the gap to the held-out verifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from factory.agent.contract import ActionFormat, TokenClient
from factory.agent.rollout import RolloutConfig, RolloutRequest, rollout
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import UserError
from factory.core.outcome import OutcomeKind
from factory.core.statistics import Interval, bootstrap_mean
from factory.core.streams import stream_seed
from factory.core.task import Task
from factory.core.trajectory import Trajectory
from sandboxes.contract import Backend


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """How a policy is measured."""

    samples: int = 4
    """Rollouts of each task."""
    greedy: bool = False
    """Take the likeliest token instead of sampling; then one rollout of each task says all."""
    seed: int = 0
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    """How episodes are run; its temperature counts unless `greedy`."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UserError("evaluation.samples", self.samples, "at least 1")
        if self.greedy and self.samples != 1:
            raise UserError("evaluation.samples", self.samples, "1 when greedy: all rollouts would be the same")


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """Counts of one task."""

    task: Digest
    part: str
    solved: int
    scored: int
    masked: int
    held_out_solved: int
    held_out_scored: int
    """Scored rollouts that a held-out verifier judged too."""
    judged_solved: int
    """Among those, the rollouts that the verifier itself passed."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One policy version on a set of tasks."""

    policy: str
    tasks: tuple[TaskResult, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(sorted({task.part for task in self.tasks}))

    def rate(self, part: str | None = None) -> Interval:
        """Mean pass rate over tasks, of one part or of all, with its interval. Raises ValueError without a scored task."""
        return bootstrap_mean([task.solved / task.scored for task in self._scored(part)])

    def gap(self, part: str | None = None) -> Interval | None:
        """Mean excess of the verifier's pass rate over the held-out verifier's, where both judged; None where none did."""
        judged = [task for task in self._scored(part) if task.held_out_scored]
        if not judged:
            return None
        return bootstrap_mean([(task.judged_solved - task.held_out_solved) / task.held_out_scored for task in judged])

    def _scored(self, part: str | None) -> list[TaskResult]:
        return [task for task in self.tasks if task.scored and part in (None, task.part)]

    def as_json(self) -> dict[str, Any]:
        """Rates and gaps of each part and of all, with the tasks' counts."""
        groups: dict[str, Any] = {}
        for name in (*self.parts, None):
            scored = self._scored(name)
            gap = self.gap(name)
            groups[name or "all"] = {
                "tasks": len(scored),
                "rollouts": sum(task.scored for task in scored),
                "masked": sum(task.masked for task in self.tasks if name in (None, task.part)),
                "rate": asdict(self.rate(name)) if scored else None,
                "verifier_gap": None if gap is None else asdict(gap),
            }
        return {"policy": self.policy, "parts": groups, "tasks": [asdict(task) for task in self.tasks]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Evaluation:
        """Read what `as_json` gave."""
        return cls(policy=value["policy"], tasks=tuple(TaskResult(**task) for task in value["tasks"]))


def paired_gain(before: Evaluation, after: Evaluation, part: str | None = None) -> Interval:
    """Mean over tasks of the change of the pass rate, for tasks that both evaluations scored.

    Pairing takes the spread of difficulty between tasks out of the interval. Raises ValueError when no task is in both.
    """
    first = {task.task: task.solved / task.scored for task in before._scored(part)}
    return bootstrap_mean([task.solved / task.scored - first[task.task] for task in after._scored(part) if task.task in first])


def evaluate(
    tasks: Sequence[tuple[Task, str]],
    *,
    client: TokenClient,
    format: ActionFormat,
    backend: Backend,
    blobs: BlobStore,
    config: EvaluationConfig,
) -> tuple[Evaluation, list[Trajectory]]:
    """Roll out each task (given with the name of its part) and count; masked rollouts are in no rate.

    The same seed gives each task the same seeds in every evaluation. Raises PolicyError when the client failed as a whole.
    """
    settings = config.rollout
    if config.greedy:
        settings = _greedy(settings)
    requests = []
    for task, _ in tasks:
        digest = task.digest
        for member in range(config.samples):
            seed = stream_seed(config.seed, "evaluation", digest, member)
            requests.append(RolloutRequest(task=task, group=f"evaluation/{digest}", member=member, seed=seed))
    trajectories = rollout(requests, client=client, format=format, backend=backend, blobs=blobs, config=settings)
    results = []
    for number, (_, part) in enumerate(tasks):
        results.append(count(trajectories[number * config.samples : (number + 1) * config.samples], part))
    return Evaluation(policy=client.version.name, tasks=tuple(results)), trajectories


def count(trajectories: Sequence[Trajectory], part: str) -> TaskResult:
    """The counts of one task's trajectories."""
    scored = [one for one in trajectories if one.outcome.kind is OutcomeKind.SCORED]
    judged = [one for one in scored if one.outcome.held_out is not None]
    return TaskResult(
        task=trajectories[0].task,
        part=part,
        solved=sum(one.outcome.solved for one in scored),
        scored=len(scored),
        masked=len(trajectories) - len(scored),
        held_out_solved=sum(one.outcome.held_out is not None and one.outcome.held_out.passed for one in judged),
        held_out_scored=len(judged),
        judged_solved=sum(one.outcome.solved for one in judged),
    )


def _greedy(settings: RolloutConfig) -> RolloutConfig:
    return replace(settings, sampling=replace(settings.sampling, temperature=0.0))
