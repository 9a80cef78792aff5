"""Group-relative advantages. Groups are named by an explicit key, never by position.

Sources: GRPO (Shao et al. 2024, section 4.1.2), Dr. GRPO (Liu et al. 2025: no division by the
standard deviation), DAPO (Yu et al. 2025: groups without variance are dropped), RLOO (Ahmadian et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from factory.core.errors import UserError
from factory.core.outcome import OutcomeKind, Termination
from factory.core.reward import RewardConfig
from factory.core.trajectory import Trajectory

BASELINES = ("mean", "leave-one-out")
TRUNCATED = ("score", "mask", "penalise")
SCALES = ("none", "std")


@dataclass(frozen=True, kw_only=True)
class AdvantageConfig:
    """How rewards become advantages."""

    baseline: str = "mean"
    """`mean` of the group, or `leave-one-out`: the mean of the other members (RLOO)."""
    scale: str = "none"
    """`none`, or `std`: divide by the group's population standard deviation."""
    std_floor: float = 1e-4
    """Least divisor under `std`, in units of reward: an almost uniform group is not blown up."""
    shaped_failures: bool = False
    """Whether a group in which nobody solved the task may learn from shaping components alone."""
    truncated: Literal["score", "mask", "penalise"] = "score"
    """What an episode that ended at a limit of tokens (of a turn, of the episode, of the context) earns: `score`, what
    its verifier says; `mask`, no vote in its group; `penalise`, that less `truncation_penalty`."""
    truncation_penalty: float = 0.5
    """Taken from the reward of such an episode under `penalise`, in units of reward; shaping, as far as a group goes in
    which nobody solved the task."""

    def __post_init__(self) -> None:
        if self.baseline not in BASELINES:
            raise UserError("advantage.baseline", self.baseline, f"one of {', '.join(BASELINES)}")
        if self.scale not in SCALES:
            raise UserError("advantage.scale", self.scale, f"one of {', '.join(SCALES)}")
        if self.truncated not in TRUNCATED:
            raise UserError("advantage.truncated", self.truncated, f"one of {', '.join(TRUNCATED)}")
        for name in ("std_floor", "truncation_penalty"):
            if not getattr(self, name) > 0:
                raise UserError(f"advantage.{name}", getattr(self, name), "a positive number")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What one rollout contributes to its group."""

    group: str
    reward: float | None
    """None when the rollout is masked: it has no vote in any baseline."""
    solved: bool


@dataclass(frozen=True, kw_only=True)
class Advantages:
    """One advantage per sample, in the order given, and what became of the groups."""

    values: tuple[float | None, ...]
    """None where the sample must not be trained on."""
    informative: frozenset[str]
    """Groups that carry signal."""
    uniform: frozenset[str]
    """Groups whose scored members all earned the same (or that learn from shaping only, unasked)."""
    starved: frozenset[str]
    """Groups with fewer than two scored members."""


def scored(trajectory: Trajectory, reward: RewardConfig, config: AdvantageConfig) -> Scored:
    """A trajectory's vote: its weighted reward when scored, none when masked or when the task is invalid.

    Of an episode that a limit of tokens cut short `config.truncated` decides.
    """
    cut = trajectory.outcome.reason is Termination.TOKEN_LIMIT
    scores = trajectory.outcome.kind is OutcomeKind.SCORED and not (cut and config.truncated == "mask")
    if not scores or trajectory.components is None:
        return Scored(group=trajectory.group, reward=None, solved=False)
    penalty = config.truncation_penalty if cut and config.truncated == "penalise" else 0.0
    value = reward.reward(trajectory.components) - penalty
    return Scored(group=trajectory.group, reward=value, solved=trajectory.outcome.solved)


def group_advantages(samples: Sequence[Scored], config: AdvantageConfig) -> Advantages:
    """Advantages within each group; permuting the samples permutes the values and changes nothing else.

    A group is informative when at least two members are scored and their rewards differ. Raises
    ValueError when a scored reward is not finite.
    """
    members: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        if sample.reward is not None:
            if not math.isfinite(sample.reward):
                raise ValueError(f"sample {index} of group {sample.group!r} has the reward {sample.reward}")
            members.setdefault(sample.group, []).append(index)
    values: list[float | None] = [None] * len(samples)
    informative: set[str] = set()
    uniform: set[str] = set()
    for group, indices in members.items():
        if len(indices) < 2:
            continue
        rewards = [float(samples[index].reward or 0.0) for index in indices]
        hopeless = not config.shaped_failures and not any(samples[index].solved for index in indices)
        if hopeless or max(rewards) == min(rewards):
            uniform.add(group)
            continue
        informative.add(group)
        for index, value in zip(indices, _within(rewards, config), strict=True):
            values[index] = value
    starved = {sample.group for sample in samples} - informative - uniform
    return Advantages(
        values=tuple(values),
        informative=frozenset(informative),
        uniform=frozenset(uniform),
        starved=frozenset(starved),
    )


def _within(rewards: list[float], config: AdvantageConfig) -> list[float]:
    count = len(rewards)
    mean = math.fsum(rewards) / count
    centred = [reward - mean for reward in rewards]
    if config.baseline == "leave-one-out":
        centred = [value * count / (count - 1) for value in centred]
    if config.scale == "none":
        return centred
    deviation = math.sqrt(math.fsum((reward - mean) ** 2 for reward in rewards) / count)
    return [value / max(deviation, config.std_floor) for value in centred]
