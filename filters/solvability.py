"""Solvability: k of n rollouts of one policy version, through the same agent loop that trains."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from factory.agent.contract import ActionFormat, TokenClient
from factory.agent.rollout import RolloutConfig, RolloutRequest, rollout
from factory.core.assessment import Assessment
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import StaleWeights, UserError
from factory.core.outcome import OutcomeKind
from factory.core.policy import PolicyVersion
from factory.core.streams import stream_seed
from factory.core.task import Task
from factory.core.trajectory import Trajectory
from sandboxes.contract import Backend

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SolvabilityConfig:
    """How an assessment is made."""

    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    resamples: int = 1
    """How many times masked rollouts are drawn anew, each time from a seed of its own."""
    masked_alarm: float = 0.05
    """Share of masked rollouts from which a warning is logged: a policy could learn to be masked."""


@dataclass(frozen=True, kw_only=True)
class Assessed:
    """What an assessment of several tasks gave."""

    assessments: tuple[Assessment, ...]
    """One per task, in the order of the tasks."""
    trajectories: tuple[Trajectory, ...]
    """Every rollout, the masked ones among them."""
    invalid: dict[Digest, str]
    """Tasks that a rollout found to be broken, with the fault: quarantine them."""

    @property
    def masked_share(self) -> float:
        """Share of masked rollouts; 0 without rollouts."""
        masked = sum(trajectory.outcome.kind is OutcomeKind.MASKED for trajectory in self.trajectories)
        return masked / len(self.trajectories) if self.trajectories else 0.0


def assess(
    tasks: Sequence[Task],
    *,
    client: TokenClient,
    format: ActionFormat,
    backend: Backend,
    blobs: BlobStore,
    version: PolicyVersion,
    n: int,
    seed: int,
    config: SolvabilityConfig | None = None,
) -> Assessed:
    """Roll every task out `n` times with the client's policy; masked rollouts are counted apart and drawn anew.

    Raises StaleWeights when the client serves another version than `version`, PolicyError when it failed as a
    whole, UserError for n < 1.
    """
    config = config or SolvabilityConfig()
    if n < 1:
        raise UserError("assess.n", n, "at least one rollout")
    if client.version.weights != version.weights:
        raise StaleWeights(f"the client serves {client.version.name}, not {version.name}")
    digests = [task.digest for task in tasks]
    found: dict[Digest, list[Trajectory]] = {digest: [] for digest in digests}
    for attempt in range(config.resamples + 1):
        requests = [
            _request(task, digest, member, version, seed, attempt)
            for digest, task in zip(found, _distinct(tasks, digests), strict=True)
            for member in range(_missing(found[digest], n))
        ]
        if not requests:
            break
        for trajectory in rollout(requests, client=client, format=format, backend=backend, blobs=blobs, config=config.rollout):
            found[trajectory.task].append(trajectory)
    return _assessed(found, version, backend.name, config)


def _distinct(tasks: Sequence[Task], digests: Sequence[Digest]) -> list[Task]:
    return list(dict(zip(digests, tasks, strict=True)).values())


def _missing(trajectories: Sequence[Trajectory], n: int) -> int:
    """How many rollouts are to be drawn: none for a task that is broken."""
    kinds = [trajectory.outcome.kind for trajectory in trajectories]
    return 0 if OutcomeKind.INVALID_TASK in kinds else n - kinds.count(OutcomeKind.SCORED)


def _request(task: Task, digest: Digest, member: int, version: PolicyVersion, seed: int, attempt: int) -> RolloutRequest:
    group = f"assess/{version.name}/{seed}/{digest}" + (f"/{attempt}" if attempt else "")
    draw = stream_seed(seed, "assess", version.weights, digest, attempt, member)
    return RolloutRequest(task=task, group=group, member=member, seed=draw)


def _assessed(
    found: dict[Digest, list[Trajectory]], version: PolicyVersion, backend: str, config: SolvabilityConfig
) -> Assessed:
    invalid = {
        digest: trajectory.outcome.fault
        for digest, trajectories in found.items()
        for trajectory in trajectories
        if trajectory.outcome.kind is OutcomeKind.INVALID_TASK
    }
    assessed = Assessed(
        assessments=tuple(
            _assessment(digest, trajectories, version, backend, config) for digest, trajectories in found.items()
        ),
        trajectories=tuple(trajectory for trajectories in found.values() for trajectory in trajectories),
        invalid=invalid,
    )
    if assessed.masked_share >= config.masked_alarm:
        logger.warning("%.0f %% of the rollouts of %s were masked", 100 * assessed.masked_share, version.name)
    return assessed


def _assessment(
    digest: Digest, trajectories: Sequence[Trajectory], version: PolicyVersion, backend: str, config: SolvabilityConfig
) -> Assessment:
    scored = [trajectory for trajectory in trajectories if trajectory.outcome.kind is OutcomeKind.SCORED]
    masked = sum(trajectory.outcome.kind is OutcomeKind.MASKED for trajectory in trajectories)
    images = sorted({trajectory.image for trajectory in scored if trajectory.image})
    return Assessment(
        task=digest,
        line=version.line,
        policy=version.weights,
        successes=sum(trajectory.outcome.solved for trajectory in scored),
        rollouts=len(scored),
        masked=masked,
        unparsed=sum(not _acted(trajectory) for trajectory in scored),
        temperature=config.rollout.sampling.temperature,
        image=images[0] if images else "",
        backend=backend,
    )


def _acted(trajectory: Trajectory) -> bool:
    """Whether any turn was a valid call."""
    return trajectory.components is not None and trajectory.components.validity > 0
