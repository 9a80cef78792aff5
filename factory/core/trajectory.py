"""Trajectories: everything that one rollout recorded, tokens included. Never re-tokenized."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

from factory.core.action import Action, Observation
from factory.core.digest import Digest
from factory.core.outcome import Outcome
from factory.core.reward import RewardComponents


class Owner(IntEnum):
    """Who put a token there."""

    SYSTEM = 0
    PROMPT = 1
    ACTION = 2
    """Sampled by the policy, outside reasoning."""
    REASONING = 3
    """Sampled by the policy, inside reasoning."""
    OBSERVATION = 4
    INJECTED_ERROR = 5
    """The harness's word on an invalid action."""
    TEMPLATE = 6
    """Scaffold of the chat template: role headers, forced ends."""


SAMPLED = frozenset({Owner.ACTION, Owner.REASONING})


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """A sequence with its provenance; all fields have the same length."""

    ids: tuple[int, ...] = ()
    owners: tuple[Owner, ...] = ()
    logprobs: tuple[float, ...] = ()
    """Behaviour log-probability of sampled tokens, nats; NaN elsewhere."""
    versions: tuple[int, ...] = ()
    """Index into the trajectory's policy versions of sampled tokens; -1 elsewhere."""

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.owners) == len(self.logprobs) == len(self.versions):
            raise ValueError("ids, owners, logprobs and versions differ in length")
        for owner, logprob, version in zip(self.owners, self.logprobs, self.versions, strict=True):
            if (owner in SAMPLED) != (version >= 0):
                raise ValueError("exactly the sampled tokens carry a policy version")
            if owner in SAMPLED and math.isnan(logprob):
                raise ValueError("a sampled token has no behaviour log-probability")

    def __len__(self) -> int:
        return len(self.ids)

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            ids=self.ids + other.ids,
            owners=self.owners + other.owners,
            logprobs=self.logprobs + other.logprobs,
            versions=self.versions + other.versions,
        )

    @classmethod
    def given(cls, ids: tuple[int, ...] | list[int], owner: Owner) -> Tokens:
        """Tokens that the harness injects."""
        count = len(ids)
        return cls(ids=tuple(ids), owners=(owner,) * count, logprobs=(math.nan,) * count, versions=(-1,) * count)

    def loss_mask(self, train_reasoning: bool = True) -> tuple[bool, ...]:
        """True for the tokens that are trained on: the sampled ones, reasoning by setting."""
        trained = SAMPLED if train_reasoning else SAMPLED - {Owner.REASONING}
        return tuple(owner in trained for owner in self.owners)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One action and what it showed. `start:end` are the sampled tokens' positions."""

    start: int
    end: int
    action: Action | None
    """None when the tokens did not parse."""
    observation: Observation | None
    finish: str
    """Why sampling stopped: `stop` or `length`."""
    decode_s: float = 0.0
    """Seconds of sampling: the batch's time shared equally among its requests."""
    environment_s: float = 0.0
    """Seconds in the sandbox."""
    observe_s: float = 0.0
    """Seconds of encoding the observation."""


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """One rollout of a policy on a task."""

    task: Digest
    group: str
    """Explicit key of the group of rollouts that share a baseline."""
    member: int
    """Number of this rollout in its group."""
    policies: tuple[str, ...]
    """Names of the policy versions that sampled, in order of first use."""
    tokens: Tokens
    turns: tuple[Turn, ...]
    outcome: Outcome
    components: RewardComponents | None
    """None unless the outcome is scored."""
    seed: int
    temperature: float
    backend: str = ""
    image: Digest = ""
    """Digest of the resolved image."""
    environment: Digest = ""
    """Digest of the environment specification."""
    reset_s: float = 0.0
    queue_s: float = 0.0
    extra: dict[str, str] = field(default_factory=dict)
