"""The canary: after every sync the same fixed tokens are scored by the engine and by the learner.

Three things are compared, at the sampling temperature. (1) Fixed sequences as the engine scores them.
(2) Tokens that the engine samples after the same sequences, with the log-probabilities it records for them: the
path that rollouts take, prefix cache included (prompt scoring may bypass that cache). (3) The count of cached tokens
right after the sync, which must be zero though the same prompts were run right before it.
Checksums of parameters cannot replace this: packed copies and caches are not parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from factory.agent.contract import Request, TokenClient
from factory.core.errors import StaleWeights, UserError
from factory.core.streams import stream, stream_seed
from trainer.logprobs import sequence_logprobs


@dataclass(frozen=True)
class Tolerance:
    """Largest and mean absolute difference allowed, nats."""

    largest: float
    mean: float


TOLERANCES = {"float32": Tolerance(1e-4, 1e-4), "bfloat16": Tolerance(0.75, 0.15), "float16": Tolerance(0.2, 0.05)}
"""By the narrower type of engine and learner. Measured: float32 at most 1.3e-5; bfloat16 mean 0.06, at most 0.27; a stale
tied head 1.2 and a stale prefix cache 3.9 after a strong change of the weights."""


@dataclass(frozen=True, kw_only=True)
class CanaryConfig:
    """What is scored."""

    sequences: int = 4
    """Fixed sequences."""
    length: int = 160
    """Tokens of each, at most: longer than a block of the prefix cache (128 tokens on the CPU) where the context allows."""
    scored: int = 24
    """First tokens of each that the engine scores; it costs a request per token."""
    sampled: int = 8
    """Tokens sampled after each."""

    def __post_init__(self) -> None:
        if self.sequences < 2:
            raise UserError("canary.sequences", self.sequences, "at least 2")
        if self.length < 16 or self.sampled < 1:
            raise UserError("canary.length", (self.length, self.sampled), "at least 16 fixed tokens and 1 sampled token")
        if not 2 <= self.scored <= self.length:
            raise UserError("canary.scored", self.scored, f"from 2 to {self.length} tokens")


@dataclass(frozen=True, kw_only=True)
class CanaryResult:
    """How far apart engine and learner are."""

    largest: float
    """Largest absolute difference, nats; infinite when a score is not a number."""
    mean: float
    """Mean absolute difference, nats."""
    tokens: int
    """Tokens compared."""
    cached_tokens: int
    """Prompt tokens that the engine took from its prefix cache; 0 after a sound sync."""


class Canary:
    """Fixed tokens, drawn once from the whole vocabulary."""

    def __init__(self, config: CanaryConfig, *, vocabulary: int, context: int, seed: int = 0) -> None:
        """`vocabulary` ids exist; `context` is the longest sequence that engine and model take, in tokens."""
        draw = stream(seed, "canary")
        self.config = config
        length = min(config.length, context - config.sampled)
        self.sequences = [tuple(draw.randrange(vocabulary) for _ in range(length)) for _ in range(config.sequences)]
        self.requests = [
            Request(prompt=sequence, seed=stream_seed(seed, "canary", number), max_tokens=config.sampled)
            for number, sequence in enumerate(self.sequences)
        ]

    def prime(self, client: TokenClient, *, temperature: float) -> None:
        """Run the prompts under the weights that are about to be replaced, so that what is left of them would show."""
        client.complete(self.requests, temperature=temperature, stop=frozenset())

    def compare(self, client: TokenClient, model: Any, *, temperature: float) -> CanaryResult:
        """Score in engine and learner. Raises StaleWeights when the engine does not answer every request."""
        completions = client.complete(self.requests, temperature=temperature, stop=frozenset())
        for completion in completions:
            if completion.error or not completion.ids:
                raise StaleWeights(f"the engine did not answer the canary: {completion.error or 'no tokens'}")
        engine = client.score([sequence[: self.config.scored] for sequence in self.sequences], temperature=temperature)
        longer = [sequence + completion.ids for sequence, completion in zip(self.sequences, completions, strict=True)]
        learner = sequence_logprobs(model, longer, temperature=temperature)
        gaps: list[float] = []
        for scored, completion, expected in zip(engine, completions, learner, strict=True):
            gaps.extend(abs(left - right) for left, right in zip(scored, expected, strict=False))
            sampled = expected[-len(completion.ids) :]
            gaps.extend(abs(left - right) for left, right in zip(completion.logprobs, sampled, strict=True))
        sound = all(math.isfinite(gap) for gap in gaps)
        return CanaryResult(
            largest=max(gaps) if sound else math.inf,
            mean=math.fsum(gaps) / len(gaps) if sound else math.inf,
            tokens=len(gaps),
            cached_tokens=sum(completion.cached_tokens for completion in completions),
        )

    def check(self, client: TokenClient, model: Any, *, temperature: float, tolerance: Tolerance) -> CanaryResult:
        """`compare`, and raise StaleWeights when engine and learner disagree or the engine kept cached tokens."""
        result = self.compare(client, model, temperature=temperature)
        if result.largest > tolerance.largest or result.mean > tolerance.mean:
            raise StaleWeights(
                f"engine and learner disagree on {result.tokens} fixed tokens after the weight sync: "
                f"at most {result.largest:.3g} nats (allowed {tolerance.largest:.3g}), "
                f"mean {result.mean:.3g} (allowed {tolerance.mean:.3g})"
            )
        if result.cached_tokens:
            raise StaleWeights(f"the engine kept {result.cached_tokens} cached prompt tokens over a weight sync")
        return result
