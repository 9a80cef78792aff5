"""The clipped surrogate over tokens, as a weighted sum.

Shapes: B rows, S positions of the batch, T = S - 1 predicted tokens per row; all tensors here are [B, T]
and zero where a token is not trained on.

Sources: PPO's clipped objective (Schulman et al. 2017, equation 7) with the ratio taken against the
probability that the *sampler* recorded; asymmetric clip and sum over tokens (DAPO, Yu et al. 2025,
equations 10 and 12); truncated importance sampling (Yao et al. 2025); the k3 estimate of KL (Schulman 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from factory.core.errors import UserError

TokenWeights = Callable[[Sequence[int], Sequence[str], int], list[float]]
"""(trained tokens per row, trajectory of each row, constant length) -> weight of one token of each row."""


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """The policy-gradient loss."""

    aggregation: str = "dapo"
    """How tokens add up: a name of `AGGREGATIONS`."""
    clip_low: float = 0.2
    """The ratio may fall to 1 - clip_low before its gradient stops."""
    clip_high: float = 0.28
    """The ratio may rise to 1 + clip_high before its gradient stops."""
    truncation: float | None = None
    """None: the ratio is learner over behaviour, so mismatch is clipped with the rest. A number C: the ratio is
    learner over learner-before-the-update, times min(C, that over behaviour) as a constant factor."""
    kl: float = 0.0
    """Coefficient of the KL penalty to the reference policy, 0 for none."""
    constant_length: int = 256
    """`dr_grpo` only: tokens by which every trajectory's sum is divided."""

    def __post_init__(self) -> None:
        if self.aggregation not in AGGREGATIONS:
            raise UserError("loss.aggregation", self.aggregation, f"one of {', '.join(sorted(AGGREGATIONS))}")
        if not 0 < self.clip_low < 1:
            raise UserError("loss.clip_low", self.clip_low, "a number between 0 and 1")
        if not self.clip_high > 0:
            raise UserError("loss.clip_high", self.clip_high, "a positive number")
        if self.truncation is not None and not self.truncation >= 1:
            raise UserError("loss.truncation", self.truncation, "a number of at least 1, or none")
        if self.kl < 0:
            raise UserError("loss.kl", self.kl, "0 or a positive number")
        if self.constant_length < 1:
            raise UserError("loss.constant_length", self.constant_length, "at least 1 token")


def _dapo(counts: Sequence[int], trajectories: Sequence[str], constant_length: int) -> list[float]:
    total = sum(counts)
    return [1.0 / total if total else 0.0 for _ in counts]


def _grpo(counts: Sequence[int], trajectories: Sequence[str], constant_length: int) -> list[float]:
    lengths: dict[str, int] = {}
    for count, trajectory in zip(counts, trajectories, strict=True):
        lengths[trajectory] = lengths.get(trajectory, 0) + count
    return [1.0 / (len(lengths) * lengths[key]) if lengths[key] else 0.0 for key in trajectories]


def _dr_grpo(counts: Sequence[int], trajectories: Sequence[str], constant_length: int) -> list[float]:
    return [1.0 / (len(set(trajectories)) * constant_length) for _ in counts]


AGGREGATIONS: dict[str, TokenWeights] = {"dapo": _dapo, "grpo": _grpo, "dr_grpo": _dr_grpo}
"""`dapo`: every trained token of the global batch weighs the same, 1 / tokens. `grpo`: mean within each trajectory,
then over trajectories (long ones weigh less per token). `dr_grpo`: sum within each trajectory over a constant, then
the mean over trajectories. A trajectory that stands in several rows weighs as it would in one."""


@dataclass(frozen=True)
class Surrogate:
    """The loss to minimise, and per-token facts for the diagnostics (detached, [B, T])."""

    loss: torch.Tensor
    ratio: torch.Tensor
    clipped: torch.Tensor
    """True where the clip stopped the gradient."""


def surrogate(
    logprobs: torch.Tensor,
    *,
    behaviour: torch.Tensor,
    advantages: torch.Tensor,
    weights: torch.Tensor,
    config: LossConfig,
    before: torch.Tensor | None = None,
    reference: torch.Tensor | None = None,
) -> Surrogate:
    """Sum over tokens of `weights` times the negative clipped objective, plus the KL penalty.

    `before` are the learner's log-probabilities before the first update of this batch (needed with
    `truncation`), `reference` those of the reference policy (needed with `kl`). Tokens of weight 0
    contribute exactly nothing, whatever stands in the other tensors there.
    """
    used = weights > 0
    centre = behaviour if config.truncation is None else _needed(before, "before", "truncation")
    log_ratio = torch.where(used, logprobs - centre, torch.zeros_like(logprobs))
    ratio = log_ratio.exp()
    bounded = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    free, held = ratio * advantages, bounded * advantages
    objective = torch.minimum(free, held)
    if config.truncation is not None:
        mismatch = torch.where(used, centre - behaviour, torch.zeros_like(logprobs))
        objective = objective * mismatch.exp().clamp(max=config.truncation).detach()
    per_token = -objective
    if config.kl > 0:
        gap = torch.where(used, _needed(reference, "reference", "kl") - logprobs, torch.zeros_like(logprobs))
        per_token = per_token + config.kl * (gap.exp() - gap - 1)
    loss = torch.where(used, per_token * weights, torch.zeros_like(per_token)).sum()
    return Surrogate(loss, ratio.detach(), (used & (held < free)).detach())


def _needed(tensor: torch.Tensor | None, name: str, setting: str) -> torch.Tensor:
    if tensor is None:
        raise ValueError(f"the setting {setting} needs {name} log-probabilities")
    return tensor.detach()
