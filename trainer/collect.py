"""Collect the groups of one step: draw tasks, roll them out, keep the groups that carry signal, and draw again for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from factory.agent.rollout import RolloutRequest
from factory.core.digest import Digest
from factory.core.outcome import OutcomeKind
from factory.core.reward import RewardConfig
from factory.core.streams import stream_seed
from factory.core.task import Task
from factory.core.trajectory import Trajectory
from trainer.advantages import AdvantageConfig, Scored, group_advantages, scored
from trainer.batches import Row, row_of
from trainer.curriculum import Curriculum

Rollouts = Callable[[Sequence[RolloutRequest]], list[Trajectory]]


@dataclass(kw_only=True)
class Collected:
    """What one step has to learn from, and what it saw."""

    groups: list[list[Row]] = field(default_factory=list)
    """Rows of the informative groups."""
    trajectories: list[Trajectory] = field(default_factory=list)
    drawn: int = 0
    """Groups rolled out."""
    uniform: int = 0
    """Groups dropped because every scored member earned the same."""
    starved: int = 0
    """Groups dropped because fewer than two members were scored."""
    quarantined: int = 0
    """Scored trajectories left out: a log-probability was not finite, or nothing was sampled."""
    shortfall: int = 0
    """Informative groups asked for and not found within the rounds."""
    rounds: int = 0
    invalid: dict[Digest, str] = field(default_factory=dict)
    """Tasks that proved broken, each with its fault; they are not drawn again."""


class Collector:
    """Fills a step with informative groups, in a bounded number of rounds."""

    def __init__(
        self,
        *,
        tasks: Callable[[Digest], Task],
        rollouts: Rollouts,
        curriculum: Curriculum,
        reward: RewardConfig,
        advantage: AdvantageConfig,
        groups: int,
        samples: int,
        rounds: int,
        train_reasoning: bool,
        seed: int,
    ) -> None:
        self.tasks, self.rollouts, self.curriculum = tasks, rollouts, curriculum
        self.reward, self.advantage = reward, advantage
        self.groups, self.samples, self.rounds = groups, samples, rounds
        self.train_reasoning, self.seed = train_reasoning, seed

    def collect(self, step: int) -> Collected:
        """Draw and roll out until `groups` informative groups stand or the rounds are over; each task once per step."""
        result = Collected()
        seen: set[Digest] = set()
        while len(result.groups) < self.groups and result.rounds < self.rounds:
            missing = self.groups - len(result.groups)
            drawn = self.curriculum.draw(missing, step=step, round=result.rounds, exclude=seen)
            if not drawn:
                break
            seen.update(drawn)
            trajectories = self.rollouts(self._requests(drawn, step))
            result.trajectories.extend(trajectories)
            result.drawn += len(drawn)
            result.rounds += 1
            self._retire(trajectories, result)
            sound = [trajectory for trajectory in trajectories if trajectory.task not in result.invalid]
            self._keep(sound, result)
            self._observe(sound, step)
        result.shortfall = self.groups - len(result.groups)
        return result

    def _requests(self, drawn: Sequence[Digest], step: int) -> list[RolloutRequest]:
        requests = []
        for digest in drawn:
            task = self.tasks(digest)
            for member in range(self.samples):
                seed = stream_seed(self.seed, "rollout", step, digest, member)
                requests.append(RolloutRequest(task=task, group=f"{step}/{digest}", member=member, seed=seed))
        return requests

    def _keep(self, trajectories: Sequence[Trajectory], result: Collected) -> None:
        """Rows of the informative groups. A quarantined trajectory has no vote, like a masked one."""
        rows = [row_of(trajectory, 0.0, train_reasoning=self.train_reasoning) for trajectory in trajectories]
        votes = [scored(trajectory, self.reward, self.advantage) for trajectory in trajectories]
        for number, (row, vote) in enumerate(zip(rows, votes, strict=True)):
            if row is None and vote.reward is not None:
                result.quarantined += 1
                votes[number] = Scored(group=vote.group, reward=None, solved=False)
        advantages = group_advantages(votes, self.advantage)
        result.uniform += len(advantages.uniform)
        result.starved += len(advantages.starved)
        kept: dict[str, list[Row]] = {}
        for row, vote, value in zip(rows, votes, advantages.values, strict=True):
            if row is not None and value is not None:
                kept.setdefault(vote.group, []).append(row.with_advantage(value))
        result.groups.extend(kept.values())

    def _observe(self, trajectories: Sequence[Trajectory], step: int) -> None:
        counts: dict[Digest, list[int]] = {}
        for trajectory in trajectories:
            if trajectory.outcome.kind is OutcomeKind.SCORED:
                count = counts.setdefault(trajectory.task, [0, 0])
                count[0] += trajectory.outcome.solved
                count[1] += 1
        for task, (successes, rollouts) in counts.items():
            self.curriculum.observe(task, successes=successes, rollouts=rollouts, step=step)

    def _retire(self, trajectories: Sequence[Trajectory], result: Collected) -> None:
        for trajectory in trajectories:
            if trajectory.outcome.kind is OutcomeKind.INVALID_TASK:
                result.invalid[trajectory.task] = trajectory.outcome.fault
                self.curriculum.retire(trajectory.task)
