"""Intervals for success rates. Pure Python: the samples are small."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Interval:
    """A point estimate with its lower and upper bound."""

    mean: float
    low: float
    high: float


def wilson(successes: int, trials: int, z: float = Z95) -> Interval:
    """Wilson's score interval for a binomial rate (Wilson 1927). Raises ValueError unless 0 <= k <= n, n > 0."""
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"need 0 <= successes <= trials and trials > 0, not {successes} of {trials}")
    rate = successes / trials
    denominator = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / denominator
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / denominator
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(rate, low, high)


def bootstrap_mean(values: Sequence[float], seed: int = 0, resamples: int = 2000, level: float = 0.95) -> Interval:
    """Percentile bootstrap of the mean over independent units (Efron 1979): one value per task.

    Rollouts of one task are not independent, so the unit is the task. Raises ValueError when empty.
    """
    if not values:
        raise ValueError("no values to average")
    generator = random.Random(seed)
    count = len(values)
    means = sorted(math.fsum(generator.choices(values, k=count)) / count for _ in range(resamples))
    tail = (1 - level) / 2
    low = means[math.floor(tail * (resamples - 1))]
    high = means[math.ceil((1 - tail) * (resamples - 1))]
    return Interval(math.fsum(values) / count, low, high)


def pass_at_k(successes: int, trials: int, k: int) -> float:
    """Unbiased pass@k (Chen et al. 2021, equation 1)."""
    if trials - successes < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(trials - successes + 1, trials + 1))
