"""One update against plain torch, and what must leave the weights alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from factory.core.errors import UserError
from trainer.batches import Row, row_of
from trainer.learner import Learner, LearnerConfig
from trainer.losses import AGGREGATIONS, LossConfig

from .support import TorchClient, make_trajectory, perturb, tiny_llama


def row(member: int, prompt: list[int], sampled: list[int], advantage: float, client: TorchClient) -> Row:
    """A row with the sampler's own log-probabilities at temperature 0.7."""
    scores = client.score([(*prompt, *sampled)], temperature=0.7)[0][len(prompt) - 1 :]
    found = row_of(
        make_trajectory(prompt=prompt, sampled=sampled, logprobs=scores, solved=advantage > 0, member=member), advantage
    )
    assert found is not None
    return found


def groups(client: TorchClient) -> list[list[Row]]:
    return [
        [row(0, [1, 2], [3, 4, 5], 0.5, client), row(1, [1, 2], [6], -0.5, client)],
        [row(2, [3], [9, 9], 0.25, client), row(3, [3], [4, 4, 4, 4], -0.25, client)],
    ]


def snapshot(model: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def test_first_step_equals_policy_gradient_through_adamw() -> None:
    """On policy the ratio is 1, so the gradient is that of -A log p / tokens: REINFORCE, written here in plain torch."""
    model, twin = tiny_llama(), tiny_llama()
    data = groups(TorchClient(model))
    learner = Learner(model, LearnerConfig(learning_rate=1.5e-3, epochs=1, minibatches=1, max_grad_norm=1e9), temperature=0.7)
    update = learner.update(data, seed=0)
    optimiser = torch.optim.AdamW(twin.parameters(), lr=1.5e-3, weight_decay=0.0)
    tokens = 10
    loss = torch.zeros(())
    for one in (one for group in data for one in group):
        table = (twin(torch.tensor([one.ids])).logits[0] / 0.7).log_softmax(-1)
        for place, used in enumerate(one.mask):
            if used:
                loss = loss - one.advantage * table[place - 1, one.ids[place]] / tokens
    loss.backward()
    optimiser.step()
    assert update.optimiser_steps == 1 and update.trained_tokens == tokens
    assert update.statistics["ratio_max"] == pytest.approx(1, abs=1e-4)
    assert update.statistics["kl_behaviour"] == pytest.approx(0, abs=1e-6)
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in twin.parameters() if p.grad is not None))
    assert update.grad_norm == pytest.approx(norm, rel=1e-4)
    for mine, plain in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(mine, plain, atol=2e-4)  # Adam's first step is the sign of the gradient times the rate


@pytest.mark.parametrize("aggregation", sorted(AGGREGATIONS))
def test_the_update_does_not_depend_on_micro_batches_or_on_the_order_of_rows(aggregation: str) -> None:
    data = groups(TorchClient(tiny_llama()))
    results: list[tuple[float, torch.Tensor]] = []
    for tokens, given in ((8192, data), (12, data), (1, data), (8192, [group[::-1] for group in data[::-1]])):
        model = tiny_llama()
        config = LearnerConfig(
            epochs=1, minibatches=1, max_grad_norm=1e9, tokens_per_micro_batch=tokens, loss=LossConfig(aggregation=aggregation)
        )
        learner = Learner(model, config, temperature=0.7)
        gradients: list[torch.Tensor] = []
        learner.optimiser.register_step_pre_hook(
            lambda optimiser, args, kwargs, model=model, gradients=gradients: gradients.append(
                torch.cat([parameter.grad.flatten().clone() for parameter in model.parameters()])
            )
        )
        update = learner.update(given, seed=0)
        results.append((update.loss, gradients[0]))
        assert len(gradients) == 1 and update.trained_tokens == 10
    loss, gradient = results[0]
    size = float(gradient.abs().max())
    assert size > 1e-3
    for other, found in results[1:]:
        assert other == pytest.approx(loss, abs=1e-6)
        assert torch.allclose(found, gradient, atol=2e-5 * size)


def test_a_batch_without_signal_moves_nothing() -> None:
    model = tiny_llama()
    learner = Learner(model, LearnerConfig(weight_decay=0.1), temperature=0.7)
    learner.update(groups(TorchClient(model)), seed=0)  # fill the moments
    before, state = snapshot(model), learner.optimiser.state_dict()["state"][0]["step"].clone()
    update = learner.update([], seed=1)
    assert update.optimiser_steps == 0 and update.statistics == {}
    assert all(torch.equal(left, right) for left, right in zip(before, snapshot(model), strict=True))
    assert torch.equal(learner.optimiser.state_dict()["state"][0]["step"], state)


@pytest.mark.parametrize("advantage", [math.nan, math.inf, 1e39])
def test_a_loss_that_is_not_finite_skips_the_step(advantage: float) -> None:
    model = tiny_llama()
    client = TorchClient(model)
    learner = Learner(model, LearnerConfig(), temperature=0.7)
    bad = [[replace(one, advantage=advantage) for one in group] for group in groups(client)]
    before = snapshot(model)
    update = learner.update(bad, seed=0)
    assert update.skipped == 4 and update.optimiser_steps == 0 and learner.steps == 0
    assert all(torch.equal(left, right) for left, right in zip(before, snapshot(model), strict=True))


def test_a_gradient_that_is_not_finite_skips_the_step() -> None:
    """A ratio beyond fp32 is held by the clip, so the loss is finite; its slope is 0 times infinity."""
    model = tiny_llama()
    data = [[replace(one, advantage=1.0) for one in group] for group in groups(TorchClient(model))]
    data[0][0] = replace(data[0][0], behaviour=tuple(-200.0 * used for used in data[0][0].mask))
    learner = Learner(model, LearnerConfig(epochs=1, minibatches=1), temperature=0.7)
    before = snapshot(model)
    update = learner.update(data, seed=0)
    assert (update.skipped, update.optimiser_steps, learner.steps) == (1, 0, 0)
    assert all(torch.equal(left, right) for left, right in zip(before, snapshot(model), strict=True))
    assert not learner.optimiser.state_dict()["state"]


def test_gradient_is_clipped_to_the_norm() -> None:
    moved = []
    for bound in (1e-12, 1.0):  # far below Adam's epsilon the step shrinks with the gradient
        model = tiny_llama()
        before = snapshot(model)
        config = LearnerConfig(epochs=1, minibatches=1, max_grad_norm=bound)
        Learner(model, config, temperature=0.7).update(groups(TorchClient(model)), seed=0)
        moved.append(max(float((a - b).abs().max()) for a, b in zip(before, snapshot(model), strict=True)))
    assert moved[0] < 1e-6 < moved[1]


def test_learning_makes_good_actions_likelier() -> None:
    model = tiny_llama()
    client = TorchClient(model)
    data = groups(client)
    learner = Learner(model, LearnerConfig(learning_rate=3e-4), temperature=0.7)
    for seed in range(5):
        learner.update(data, seed=seed)
    after = TorchClient(model)
    for group in data:
        good, bad = (sum(after.score([one.ids], temperature=0.7)[0][-one.trained :]) - sum(one.behaviour) for one in group)
        assert good > 0 > bad


def test_truncation_takes_the_ratio_against_the_learner_itself() -> None:
    """With weights other than the sampler's, the first ratio is 1 under truncation and is not without it."""
    sampler = TorchClient(tiny_llama())
    data = groups(sampler)
    ratios = []
    for truncation in (2.0, None):
        model = tiny_llama()
        perturb(model, 1)
        config = LearnerConfig(epochs=1, minibatches=1, loss=LossConfig(truncation=truncation))
        statistics = Learner(model, config, temperature=0.7).update(data, seed=0).statistics
        ratios.append((statistics["ratio_min"], statistics["ratio_max"]))
    assert ratios[0] == (pytest.approx(1, abs=1e-5), pytest.approx(1, abs=1e-5))
    assert ratios[1][1] - ratios[1][0] > 0.1


def test_kl_needs_a_reference_and_pulls_towards_it() -> None:
    with pytest.raises(UserError, match=r"loss\.kl"):
        Learner(tiny_llama(), LearnerConfig(loss=LossConfig(kl=0.1)), temperature=1.0)
    distances = []
    for kl in (0.0, 20.0):
        model, reference = tiny_llama(), tiny_llama()
        data = groups(TorchClient(model))
        config = LearnerConfig(epochs=8, minibatches=1, learning_rate=5e-4, loss=LossConfig(kl=kl))
        Learner(model, config, temperature=0.7, reference=reference).update(data, seed=0)
        moved = TorchClient(model)
        now = [moved.score([one.ids], temperature=0.7)[0][-one.trained :] for group in data for one in group]
        then = [one.behaviour[-one.trained :] for group in data for one in group]
        gaps = [abs(a - b) for left, right in zip(now, then, strict=True) for a, b in zip(left, right, strict=True)]
        distances.append(sum(gaps) / len(gaps))
    assert distances[1] < 0.5 * distances[0]


def test_state_continues_bit_for_bit() -> None:
    client = TorchClient(tiny_llama())
    data = groups(client)
    straight = Learner(tiny_llama(), LearnerConfig(), temperature=0.7)
    for seed in range(3):
        straight.update(data, seed=seed)
    first = Learner(tiny_llama(), LearnerConfig(), temperature=0.7)
    first.update(data, seed=0)
    second = Learner(tiny_llama(seed=5), LearnerConfig(), temperature=0.7)
    second.restore(first.state())
    for seed in (1, 2):
        second.update(data, seed=seed)
    assert all(torch.equal(a, b) for a, b in zip(straight.model.parameters(), second.model.parameters(), strict=True))


def test_warm_up_of_the_rate() -> None:
    model = tiny_llama()
    learner = Learner(model, LearnerConfig(epochs=1, minibatches=1, warmup_steps=4, learning_rate=8e-4), temperature=0.7)
    rates = []
    for seed in range(5):
        learner.update(groups(TorchClient(model)), seed=seed)
        rates.append(learner.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([2e-4, 4e-4, 6e-4, 8e-4, 8e-4])
