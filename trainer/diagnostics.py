"""What a step did, in numbers that show trouble early.

The KL estimate between the sampler and the learner is k3 (Schulman 2020): mean of exp(d) - 1 - d with
d = learner - behaviour, over tokens that the behaviour policy sampled; never negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

import torch

from trainer.losses import Surrogate


@dataclass
class TokenStatistics:
    """Running sums over trained tokens of one or more micro-batches."""

    tokens: int = 0
    entropy: float = 0.0
    clipped: int = 0
    ratio: float = 0.0
    ratio_low: float = math.inf
    ratio_high: float = -math.inf
    kl: float = 0.0

    def add(
        self, result: Surrogate, *, logprobs: torch.Tensor, behaviour: torch.Tensor, entropy: torch.Tensor, mask: torch.Tensor
    ) -> None:
        """Take in one micro-batch; all tensors [B, T], only positions in `mask` count."""
        count = int(mask.sum())
        if count == 0:
            return
        gap = (logprobs.detach() - behaviour)[mask].double()
        ratio = result.ratio[mask].double()
        self.tokens += count
        self.entropy += float(entropy[mask].double().sum())
        self.clipped += int(result.clipped[mask].sum())
        self.ratio += float(ratio.sum())
        self.ratio_low = min(self.ratio_low, float(ratio.min()))
        self.ratio_high = max(self.ratio_high, float(ratio.max()))
        self.kl += float((gap.exp() - 1 - gap).sum())

    def summary(self) -> dict[str, float]:
        """Means per token: `entropy` and `kl_behaviour` in nats, `clip_fraction`, ratios. Empty without tokens."""
        if self.tokens == 0:
            return {}
        return {
            "entropy": self.entropy / self.tokens,
            "clip_fraction": self.clipped / self.tokens,
            "ratio_mean": self.ratio / self.tokens,
            "ratio_min": self.ratio_low,
            "ratio_max": self.ratio_high,
            "kl_behaviour": self.kl / self.tokens,
        }


@dataclass
class Phases:
    """Seconds per named phase of a step."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """Add the time spent in the block to phase `name`."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def masked_alarm(masked: int, rollouts: int, threshold: float) -> bool:
    """Whether so many rollouts were masked that the policy may be learning to be masked, or the machine is sick."""
    return rollouts > 0 and masked / rollouts > threshold
