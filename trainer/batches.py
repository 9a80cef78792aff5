"""From trajectories to tensors. Token ids go through untouched; the loss mask comes from provenance alone.

Shapes: B rows, S positions, T = S - 1 predicted tokens per row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from factory.core.trajectory import Trajectory
from trainer.losses import AGGREGATIONS, LossConfig


@dataclass(frozen=True, kw_only=True)
class Row:
    """One sequence to learn from."""

    trajectory: str
    """Key of the trajectory; rows that share it weigh together as one."""
    ids: tuple[int, ...]
    mask: tuple[bool, ...]
    """True for the tokens that are trained on; never the first."""
    behaviour: tuple[float, ...]
    """Log-probability under the sampler where `mask` is True, else 0."""
    advantage: float
    before: tuple[float, ...] | None = None
    """Log-probability under the learner before the first update of this batch, per position; see `LossConfig.truncation`."""

    @property
    def trained(self) -> int:
        return sum(self.mask)

    def with_advantage(self, advantage: float) -> Row:
        return replace(self, advantage=advantage)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Padded rows. Everything but `ids`, `positions` and `attention` is [B, T], aligned with the predicted token."""

    rows: tuple[Row, ...]
    ids: torch.Tensor
    mask: torch.Tensor
    behaviour: torch.Tensor
    before: torch.Tensor | None
    advantages: torch.Tensor
    weights: torch.Tensor
    """Weight of each token in the loss of the whole optimiser step; 0 where it is not trained on."""
    positions: torch.Tensor | None
    """[B, S]; None for right padding, where the model's own positions are right."""
    attention: torch.Tensor | None
    """[B, S]; None for right padding, which no real token can see."""


def row_of(trajectory: Trajectory, advantage: float, *, train_reasoning: bool = True) -> Row | None:
    """The row of a trajectory, or None (quarantine): a trained log-probability is not finite, or nothing is trained."""
    tokens = trajectory.tokens
    mask = tokens.loss_mask(train_reasoning)
    if not any(mask) or mask[0]:
        return None
    if not all(math.isfinite(logprob) for logprob, used in zip(tokens.logprobs, mask, strict=True) if used):
        return None
    return Row(
        trajectory=f"{trajectory.group}/{trajectory.member}",
        ids=tokens.ids,
        mask=mask,
        behaviour=tuple(logprob if used else 0.0 for logprob, used in zip(tokens.logprobs, mask, strict=True)),
        advantage=advantage,
    )


def row_weights(rows: Sequence[Row], config: LossConfig) -> list[float]:
    """The weight of one token of each row, over all rows of one optimiser step."""
    weigh = AGGREGATIONS[config.aggregation]
    return weigh([row.trained for row in rows], [row.trajectory for row in rows], config.constant_length)


def micro_batches(
    rows: Sequence[Row], weights: Sequence[float], *, tokens: int, device: torch.device | str = "cpu"
) -> Iterator[Batch]:
    """Rows of similar length together, each batch of at most `tokens` positions (one row may exceed it).

    The weights were fixed over the whole step, so the sum of the micro-batches' losses does not depend on the split.
    """
    order = sorted(range(len(rows)), key=lambda index: (len(rows[index].ids), rows[index].trajectory))
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * len(rows[order[stop]].ids) <= tokens:
            stop += 1
        part = order[start:stop]
        yield padded([rows[index] for index in part], [weights[index] for index in part], device=device)
        start = stop


def padded(
    rows: Sequence[Row],
    weights: Sequence[float],
    *,
    side: str = "right",
    length: int | None = None,
    device: torch.device | str = "cpu",
) -> Batch:
    """Rows as tensors of `length` positions (default: the longest), padded on `side` with id 0, which nothing reads."""
    size = max(len(row.ids) for row in rows) if length is None else length
    shape = (len(rows), size)
    ids = torch.zeros(shape, dtype=torch.long)
    mask = torch.zeros(shape, dtype=torch.bool)
    behaviour, advantages, scale = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
    before = torch.zeros(shape) if rows[0].before is not None else None
    positions, attention = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    for number, (row, weight) in enumerate(zip(rows, weights, strict=True)):
        first = 0 if side == "right" else size - len(row.ids)
        where = slice(first, first + len(row.ids))
        ids[number, where] = torch.tensor(row.ids)
        used = torch.tensor(row.mask)
        mask[number, where] = used
        behaviour[number, where] = torch.tensor(row.behaviour)
        if before is not None and row.before is not None:
            before[number, where] = torch.tensor(row.before)
        advantages[number, where] = row.advantage * used
        scale[number, where] = weight * used
        positions[number, where] = torch.arange(len(row.ids))
        attention[number, where] = 1
    left = side == "left"
    return Batch(
        rows=tuple(rows),
        ids=ids.to(device),
        mask=mask[:, 1:].to(device),
        behaviour=behaviour[:, 1:].to(device),
        before=None if before is None else before[:, 1:].to(device),
        advantages=advantages[:, 1:].to(device),
        weights=scale[:, 1:].to(device),
        positions=positions.to(device) if left else None,
        attention=attention.to(device) if left else None,
    )
