"""The loss sees sampled tokens only, and neither padding nor order nor the split into micro-batches."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factory.core.trajectory import SAMPLED, Owner, Tokens
from trainer.batches import Batch, Row, micro_batches, padded, row_of, row_weights
from trainer.logprobs import token_logprobs
from trainer.losses import AGGREGATIONS, LossConfig, surrogate

from .support import make_trajectory, tiny_llama

MODEL = tiny_llama()


def rows() -> list[Row]:
    """Three trajectories of different lengths; the second has two turns with an observation between them."""
    first = make_trajectory(prompt=[1, 2], sampled=[3, 4, 5], logprobs=[-3.0, -3.1, -3.2], solved=True, member=0)
    turns = Tokens(ids=(6, 7), owners=(Owner.REASONING, Owner.ACTION), logprobs=(-3.3, -3.0), versions=(0, 0))
    middle = first.tokens + Tokens.given([9, 9, 9], Owner.OBSERVATION) + turns
    second = replace(first, tokens=middle, member=1)
    third = make_trajectory(prompt=[8], sampled=[9], logprobs=[-3.4], solved=False, member=2)
    found = [row_of(one, advantage) for one, advantage in ((first, 0.5), (second, 0.25), (third, -0.75))]
    return [row for row in found if row is not None]


def gradient(batches: list[Batch], config: LossConfig) -> tuple[float, torch.Tensor]:
    MODEL.zero_grad()
    total = 0.0
    for batch in batches:
        logprobs, _ = token_logprobs(
            MODEL, batch.ids, batch.mask, temperature=0.7, positions=batch.positions, attention=batch.attention
        )
        result = surrogate(
            logprobs, behaviour=batch.behaviour, advantages=batch.advantages, weights=batch.weights, config=config
        )
        result.loss.backward()
        total += result.loss.item()
    return total, torch.cat([p.grad.flatten() for p in MODEL.parameters() if p.grad is not None])


def test_mask_follows_provenance() -> None:
    row = rows()[1]
    assert row.mask == (False, False, True, True, True, False, False, False, True, True)
    assert row.behaviour == (0, 0, -3.0, -3.1, -3.2, 0, 0, 0, -3.3, -3.0)
    trajectory = make_trajectory(prompt=[1], sampled=[2], logprobs=[-1.0], solved=True)
    reasoning = replace(
        trajectory,
        tokens=Tokens.given([1], Owner.PROMPT) + Tokens(ids=(2,), owners=(Owner.REASONING,), logprobs=(-1.0,), versions=(0,)),
    )
    assert row_of(reasoning, 1.0, train_reasoning=False) is None


@given(
    st.lists(st.tuples(st.integers(0, 31), st.sampled_from(Owner)), min_size=1, max_size=10), st.sampled_from(["left", "right"])
)
def test_at_every_cut_the_tensors_hold_the_recorded_tokens_in_place(said: list[tuple[int, Owner]], side: str) -> None:
    """Token n of the trajectory is predicted at place n - 1, with its own log-probability (here -n) where it was sampled."""
    trajectory = make_trajectory(prompt=[1], sampled=[2], logprobs=[-1.0], solved=True)
    for cut in range(1, len(said) + 1):
        ids, owners = zip(*said[:cut], strict=True)
        whose = [owner in SAMPLED for owner in owners]
        own = Tokens(
            ids=ids,
            owners=owners,
            logprobs=tuple(-1.0 - place if sampled else math.nan for place, sampled in enumerate(whose)),
            versions=tuple(0 if sampled else -1 for sampled in whose),
        )
        row = row_of(replace(trajectory, tokens=Tokens.given([7], Owner.PROMPT) + own), 0.5)
        if not any(whose):
            assert row is None
            continue
        assert row is not None and row.ids == (7, *ids)
        batch = padded([row], [0.25], side=side, length=cut + 3)
        first = 2 if side == "left" else 0
        place = slice(first, first + cut)
        assert batch.ids[0, first : first + cut + 1].tolist() == [7, *ids]
        assert batch.mask[0, place].tolist() == whose
        assert batch.behaviour[0, place].tolist() == [-1.0 - n if sampled else 0.0 for n, sampled in enumerate(whose)]
        assert batch.advantages[0, place].tolist() == [0.5 * sampled for sampled in whose]
        assert batch.weights[0, place].tolist() == [0.25 * sampled for sampled in whose]
        assert int(batch.mask.sum()) == int((batch.weights > 0).sum()) == sum(whose)


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_a_log_probability_that_is_not_finite_quarantines_the_trajectory(bad: float) -> None:
    assert row_of(make_trajectory(prompt=[1], sampled=[2, 3], logprobs=[-1.0, bad], solved=True), 1.0) is None


def test_one_sampled_token_has_gradient_at_one_row_of_logits_only() -> None:
    """The token at position 2 is predicted at position 1: an off-by-one mask would show."""
    row = row_of(make_trajectory(prompt=[1, 2], sampled=[3], logprobs=[-2.0], solved=True), 1.0)
    assert row is not None
    longer = replace(row, ids=(*row.ids, 4, 5), mask=(*row.mask, False, False), behaviour=(*row.behaviour, 0.0, 0.0))
    batch = padded([longer], [1.0])
    states: list[torch.Tensor] = []
    hook = MODEL.model.norm.register_forward_hook(lambda module, args, out: (out.retain_grad(), states.append(out))[0])
    try:
        gradient([batch], LossConfig())
    finally:
        hook.remove()
    assert states[0].grad is not None
    touched = states[0].grad.abs().sum(-1)[0] > 0
    assert touched.tolist() == [False, True, False, False, False]


def test_gradient_of_logits_is_zero_at_every_token_that_was_not_sampled() -> None:
    row = rows()[1]
    batch = padded([row], [1.0])
    seen: list[torch.Tensor] = []
    hook = MODEL.model.norm.register_forward_hook(lambda module, args, out: (out.retain_grad(), seen.append(out))[0])
    try:
        reference = torch.full_like(batch.behaviour, -2.0)
        logprobs, _ = token_logprobs(MODEL, batch.ids, batch.mask, temperature=1.0)
        config = LossConfig(kl=0.5)
        surrogate(
            logprobs,
            behaviour=logprobs.detach(),
            advantages=batch.advantages,
            weights=batch.weights,
            config=config,
            reference=reference,
        ).loss.backward()
    finally:
        hook.remove()
    assert seen[0].grad is not None
    assert (seen[0].grad.abs().sum(-1)[0] > 0).tolist() == [*row.mask[1:], False]


@pytest.mark.parametrize("aggregation", sorted(AGGREGATIONS))
def test_loss_does_not_depend_on_padding_order_or_split(aggregation: str) -> None:
    config = LossConfig(aggregation=aggregation)
    data = rows()
    weights = row_weights(data, config)
    loss, expected = gradient([padded(data, weights)], config)
    assert expected.abs().max() > 1e-3
    order = [2, 0, 1]
    variants = {
        "more padding": [padded(data, weights, length=23)],
        "left padding": [padded(data, weights, side="left", length=14)],
        "other order": [padded([data[i] for i in order], [weights[i] for i in order])],
        "one row each": list(micro_batches(data, weights, tokens=1)),
        "two micro-batches": list(micro_batches(data, weights, tokens=10)),
    }
    assert [len(batches) for batches in variants.values()] == [1, 1, 1, 3, 2]
    for name, batches in variants.items():
        other, grad = gradient(batches, config)
        assert other == pytest.approx(loss, abs=1e-6), name
        assert torch.allclose(grad, expected, atol=1e-6), name


def test_two_ranks_sum_to_the_whole() -> None:
    """Weights are fixed over all rows of the step, so ranks that share the rows add up to one process's gradient."""
    config = LossConfig()
    data = rows()
    weights = row_weights(data, config)
    _, whole = gradient([padded(data, weights)], config)
    parts = [gradient([padded(data[i::2], weights[i::2])], config)[1].clone() for i in range(2)]
    assert torch.allclose(parts[0] + parts[1], whole, atol=1e-6)
