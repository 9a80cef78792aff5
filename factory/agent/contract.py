"""The contracts of the agent loop: token clients and action formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from factory.core.action import Action, Observation
from factory.core.policy import PolicyVersion
from factory.core.task import Task
from factory.core.trajectory import Tokens


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn. Truncated sampling (top-p, top-k, penalties) is not offered: the learner could not match it."""

    temperature: float = 1.0
    """Divides the logits; the learner scores at the same."""
    max_tokens: int = 64
    """Most tokens of one turn."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One sequence to continue. `seed` is its own: equal seeds on equal prompts give equal completions."""

    prompt: tuple[int, ...]
    seed: int
    max_tokens: int


@dataclass(frozen=True, kw_only=True)
class Completion:
    """Sampled ids, the stop token included, each with the log-probability under the sampling distribution."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: str
    """`stop` (a stop id was sampled, it is the last id) or `length`."""
    cached_tokens: int = 0
    error: str = ""
    """Non-empty when this request failed; then ids are empty and the episode is masked."""


class TokenClient(Protocol):
    """Token ids in, token ids and log-probabilities out. Ids outside the vocabulary raise PolicyError before submission."""

    version: PolicyVersion
    elsewhere: bool
    """Whether it computes on other processors than this machine's cores, which are then free for sandboxes meanwhile."""

    def complete(self, requests: Sequence[Request], *, temperature: float, stop: frozenset[int]) -> list[Completion]:
        """One completion per request, in order. Raises PolicyError when the engine as a whole failed."""
        ...

    def score(self, sequences: Sequence[tuple[int, ...]], *, temperature: float) -> list[list[float]]:
        """Log-probability of each token after the first of each sequence, at `temperature`, for the canary."""
        ...


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What one completion said: an action, or what was wrong with it; and whose each token is."""

    tokens: Tokens
    """The sampled ids with owners (action or reasoning), log-probabilities and version index."""
    action: Action | None
    error: str = ""
    """One line for the policy to read: why this is no action."""


class ActionFormat(Protocol):
    """Turns tasks and observations into ids, and sampled ids into actions. Torch-free.

    Delimiters are out of band: text of tasks and tools is encoded with special tokens as plain text.
    Prompts only ever grow: turn k's prompt starts with turn k-1's ids, sampled ones as sampled.
    """

    name: str
    stop: frozenset[int]

    def opening(self, task: Task) -> Tokens:
        """System text, tools and instruction, ready for the policy's first turn."""
        ...

    def parse(self, ids: tuple[int, ...], logprobs: tuple[float, ...], version: int, task: Task) -> Parsed:
        """Read one completion. Never re-tokenizes: owners are given to the ids as they came."""
        ...

    def observation(self, observation: Observation) -> Tokens:
        """What the policy reads next, up to the start of its following turn."""
        ...

    def written(self, action: Action) -> tuple[int, ...]:
        """The ids that a policy would sample for `action`, stop id included (demonstrations)."""
        ...
