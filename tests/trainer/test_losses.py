"""Values and gradients by hand arithmetic on log-probabilities made for the purpose."""

from __future__ import annotations

import math

import pytest
import torch

from factory.core.errors import UserError
from trainer.losses import AGGREGATIONS, LossConfig, surrogate

RATIOS = [1.0, 1.5, 0.5, 1.5, 0.5]
ADVANTAGES = [1.0, 1.0, 1.0, -1.0, -1.0]
# min(r A, clip(r, 0.8, 1.28) A): free, held at 1.28, free (pessimistic), free (pessimistic), held at -0.8
OBJECTIVES = [1.0, 1.28, 0.5, -1.5, -0.8]
# d(r A)/d log p = r A where the clip does not hold, else 0
SLOPES = [1.0, 0.0, 0.5, -1.5, 0.0]


def tensors(values: list[float]) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.float64)


def test_clipped_surrogate_value_and_gradient() -> None:
    behaviour = tensors([-1.0, -2.0, -0.5, -3.0, -0.1])
    logprobs = (behaviour + tensors(RATIOS).log()).requires_grad_()
    weights = tensors([0.1, 0.2, 0.3, 0.4, 0.5])
    result = surrogate(logprobs, behaviour=behaviour, advantages=tensors(ADVANTAGES), weights=weights, config=LossConfig())
    result.loss.backward()
    expected = -sum(weight * value for weight, value in zip([0.1, 0.2, 0.3, 0.4, 0.5], OBJECTIVES, strict=True))
    assert result.loss.item() == pytest.approx(expected, rel=1e-6)
    slopes = [-weight * slope for weight, slope in zip([0.1, 0.2, 0.3, 0.4, 0.5], SLOPES, strict=True)]
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx(slopes, rel=1e-6)
    assert result.clipped.tolist() == [[False, True, False, False, True]]
    assert result.ratio[0].tolist() == pytest.approx(RATIOS)


def test_truncated_importance_sampling() -> None:
    behaviour, before = tensors([-1.0, -1.0]), tensors([-1.0 + math.log(3.0), -1.0 + math.log(0.5)])
    logprobs = (before + tensors([1.1, 0.9]).log()).requires_grad_()
    result = surrogate(
        logprobs,
        behaviour=behaviour,
        before=before,
        advantages=tensors([1.0, -1.0]),
        weights=tensors([1.0, 1.0]),
        config=LossConfig(truncation=2.0),
    )
    result.loss.backward()
    # factors min(2, 3) = 2 and 0.5; ratios against `before` are 1.1 and 0.9, inside the clip
    assert result.loss.item() == pytest.approx(-(2.0 * 1.1 - 0.5 * 0.9))
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([-2.2, 0.45])


def test_kl_penalty_is_k3() -> None:
    logprobs = tensors([math.log(0.5), math.log(0.25)]).requires_grad_()
    reference = tensors([math.log(0.25), math.log(0.25)])
    result = surrogate(
        logprobs,
        behaviour=logprobs.detach(),
        reference=reference,
        advantages=tensors([0.0, 0.0]),
        weights=tensors([1.0, 1.0]),
        config=LossConfig(kl=0.1),
    )
    result.loss.backward()
    # q/p - 1 - log(q/p) with q/p = 1/2; slope with respect to log p is 1 - q/p
    assert result.loss.item() == pytest.approx(0.1 * (0.5 - 1 + math.log(2)))
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([0.1 * 0.5, 0.0])


def test_tokens_without_weight_contribute_nothing_even_when_broken() -> None:
    logprobs = torch.tensor([[-1.0, -math.inf, math.nan]], requires_grad=True)
    result = surrogate(
        logprobs,
        behaviour=torch.tensor([[-1.0, math.nan, 0.0]]),
        advantages=torch.tensor([[2.0, math.nan, 1.0]]).nan_to_num(5.0),
        weights=torch.tensor([[0.5, 0.0, 0.0]]),
        config=LossConfig(),
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(-1.0)
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dapo", [1 / 101, 1 / 101]),
        ("grpo", [1 / 2, 1 / 200]),  # mean within each, then over the two
        ("dr_grpo", [1 / 100, 1 / 100]),  # two trajectories, constant 50
    ],
)
def test_weight_of_a_token_in_short_and_long_trajectories(name: str, expected: list[float]) -> None:
    assert AGGREGATIONS[name]([1, 100], ["a", "b"], 50) == pytest.approx(expected)


@pytest.mark.parametrize("name", sorted(AGGREGATIONS))
def test_a_trajectory_in_three_rows_weighs_as_one(name: str) -> None:
    whole = AGGREGATIONS[name]([9, 5], ["a", "b"], 50)
    split = AGGREGATIONS[name]([2, 3, 4, 5], ["a", "a", "a", "b"], 50)
    assert split == pytest.approx([whole[0]] * 3 + [whole[1]])


def test_settings_that_need_more_say_so() -> None:
    one = tensors([0.0])
    with pytest.raises(ValueError, match="truncation needs before"):
        surrogate(one, behaviour=one, advantages=one, weights=one, config=LossConfig(truncation=2.0))
    with pytest.raises(ValueError, match="kl needs reference"):
        surrogate(one, behaviour=one, advantages=one, weights=one, config=LossConfig(kl=0.1))


@pytest.mark.parametrize(
    "wrong",
    [{"aggregation": "sum"}, {"clip_low": 1.0}, {"clip_high": 0.0}, {"truncation": 0.5}, {"kl": -1.0}, {"constant_length": 0}],
)
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        LossConfig(**wrong)  # type: ignore[arg-type]
