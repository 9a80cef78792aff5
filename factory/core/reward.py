"""Rewards: components are measured and stored; a configuration weighs them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RewardComponents:
    """What an episode earned, part by part."""

    outcome: float
    """1.0 when every check passed, else 0.0."""
    progress: float
    """Share of checks passed, in [0, 1]."""
    validity: float
    """Share of turns whose action parsed, named a tool and fitted its schema, in [0, 1]."""
    tokens: int
    """Tokens that the policy produced."""
    calls: int
    """Tool calls made."""
    seconds: float
    """Wall time in the environment."""
    forbidden: int = 0
    """Acts that the task forbids."""


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Weights of the components; the default rewards the outcome alone."""

    outcome: float = 1.0
    """Of an episode in which every check passed."""
    progress: float = 0.0
    """Of all checks passing; of some, their share of it."""
    validity: float = 0.0
    """Of every turn being a valid call; of some, their share of it."""
    per_token: float = 0.0
    """Of each token that the policy produced; a cost is negative."""
    per_call: float = 0.0
    """Of each tool call."""
    per_second: float = 0.0
    """Of each second in the environment."""
    per_forbidden: float = 0.0
    """Of each act that the task forbids."""

    def reward(self, parts: RewardComponents) -> float:
        """The weighted sum; costs are given as negative weights."""
        return (
            self.outcome * parts.outcome
            + self.progress * parts.progress
            + self.validity * parts.validity
            + self.per_token * parts.tokens
            + self.per_call * parts.calls
            + self.per_second * parts.seconds
            + self.per_forbidden * parts.forbidden
        )
