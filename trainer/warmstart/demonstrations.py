"""Demonstrations as token sequences: an endless, seeded series in shards, and batches from it.

Shapes: B rows, S positions, T = S - 1 predicted tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import torch

from factory.agent.contract import ActionFormat
from factory.core.action import Observation
from factory.core.demonstration import Demonstration
from factory.core.errors import UserError
from factory.core.streams import stream, stream_seed
from factory.core.task import EnvironmentSpec, Task, TaskKind, VerifierSpec
from factory.core.trajectory import Owner, Tokens
from generators.contract import Demonstrator


@dataclass(frozen=True, kw_only=True)
class Source:
    """One demonstrator and how much of the series it gives."""

    demonstrator: Demonstrator
    kind: TaskKind
    tools: tuple[str, ...]
    """Tools that its tasks offer; formats with a system text list them."""
    share: float = 1.0
    """Its part of the series, relative to the other sources'."""


@dataclass(frozen=True)
class Example:
    """One demonstration in the policy's own tokens."""

    tokens: Tokens
    depth: int
    """Actions before the submission."""
    source: int
    """Number of its source."""

    def __len__(self) -> int:
        return len(self.tokens)


def example(
    format: ActionFormat,
    source: Source,
    number: int,
    instruction: str,
    demonstration: Demonstration,
    observations: Sequence[str],
) -> Example:
    """What a rollout would have recorded, had the policy written the reference actions.

    The reference has one way to act, so its behaviour log-probabilities are 0.
    """
    tokens = format.opening(carrier(instruction, source))
    for action, text in zip_longest(demonstration.actions, observations):
        ids = format.written(action)
        count = len(ids)
        tokens += Tokens(ids=ids, owners=(Owner.ACTION,) * count, logprobs=(0.0,) * count, versions=(0,) * count)
        if text is not None:
            tokens += format.observation(Observation(text=text, exit_code=0))
    return Example(tokens, len(demonstration.actions) - 1, number)


def carrier(instruction: str, source: Source) -> Task:
    """A task that only carries what a format reads: kind, instruction and tools. It has no digest of its own right."""
    return Task(
        kind=source.kind,
        instruction=instruction,
        environment=EnvironmentSpec(files="", tools=source.tools),
        verifier=VerifierSpec(bundle=""),
        held_out=None,
        solution="",
    )


class Series:
    """Shard k holds `size` examples of all sources by share, the same for the same seed."""

    def __init__(
        self, sources: Sequence[Source], format: ActionFormat, *, seed: int, purpose: str, size: int, longest: int
    ) -> None:
        """`longest`: examples with more tokens are left out. Raises UserError without a source of positive share."""
        if not sources or min(source.share for source in sources) < 0 or not sum(source.share for source in sources) > 0:
            raise UserError("warmstart.sources", [source.share for source in sources], "shares of 0 or more, one positive")
        self.sources, self.format, self.seed, self.purpose = tuple(sources), format, seed, purpose
        self.size, self.longest = size, longest

    def shard(self, number: int) -> list[Example]:
        """Examples of shard `number`, in a drawn order. Raises UserError when all are too long."""
        result = [
            item
            for index, count in enumerate(self._counts())
            for item in self._examples(index, number, count)
            if len(item) <= self.longest
        ]
        if not result:
            raise UserError("warmstart.longest", self.longest, "room for at least one demonstration")
        stream(self.seed, self.purpose, "order", number).shuffle(result)
        return result

    def _counts(self) -> list[int]:
        """`size` split by share: the shares' running sums are rounded, so the counts add up."""
        total = sum(source.share for source in self.sources)
        edges = [0]
        running = 0.0
        for source in self.sources:
            running += source.share
            edges.append(round(self.size * running / total))
        return [end - begin for begin, end in pairwise(edges)]

    def _examples(self, index: int, number: int, count: int) -> Iterator[Example]:
        source = self.sources[index]
        seed = stream_seed(self.seed, self.purpose, index, number)
        for instruction, demonstration, observations in source.demonstrator.demonstrate(seed=seed, count=count):
            yield example(self.format, source, index, instruction, demonstration, observations)


@dataclass(frozen=True)
class Batch:
    """Right-padded rows; causal attention keeps padding out of every real position."""

    ids: torch.Tensor
    """[B, S] int64."""
    weights: torch.Tensor
    """[B, T] fp32: weight of predicting ids[:, t + 1]; 0 on padding."""


def batches(examples: Sequence[Example], size: int, *, prompt_weight: float, pad: int) -> list[Batch]:
    """Whole batches of `size` examples of like length; what does not fill one is left out.

    Examples are sorted by length within stretches of sixteen batches, so that little is padding and a
    batch still mixes tasks; the batches of a stretch then alternate between short and long.
    """
    result = []
    stretch = 16 * size
    for begin in range(0, len(examples) - size + 1, stretch):
        part = sorted(examples[begin : begin + stretch], key=len)
        groups = [part[first : first + size] for first in range(0, len(part) - size + 1, size)]
        order = sorted(range(len(groups)), key=lambda number: (number * 7 % 16, number))
        result += [collate(groups[number], prompt_weight=prompt_weight, pad=pad) for number in order]
    return result


def collate(examples: Sequence[Example], *, prompt_weight: float, pad: int) -> Batch:
    """One batch: weight 1 on the policy's own tokens by provenance, `prompt_weight` on what it was given."""
    width = max(map(len, examples))
    ids = torch.full((len(examples), width), pad, dtype=torch.int64)
    weights = torch.zeros(len(examples), width - 1)
    for row, item in enumerate(examples):
        ids[row, : len(item)] = torch.tensor(item.tokens.ids)
        mask = torch.tensor(item.tokens.loss_mask()[1:])
        weights[row, : len(item) - 1] = torch.where(mask, 1.0, prompt_weight)
    return Batch(ids, weights)
