"""Reward components and their weights."""

from __future__ import annotations

from dataclasses import fields

import pytest

from factory.core.reward import RewardComponents, RewardConfig

PARTS = RewardComponents(outcome=1.0, progress=0.5, validity=0.75, tokens=100, calls=3, seconds=2.0, forbidden=1)


def test_the_default_rewards_the_outcome_alone() -> None:
    assert RewardConfig().reward(PARTS) == 1.0
    failed = RewardComponents(outcome=0.0, progress=0.9, validity=1.0, tokens=5, calls=1, seconds=9.0)
    assert RewardConfig().reward(failed) == 0.0


def test_the_weighted_sum_by_hand() -> None:
    config = RewardConfig(
        outcome=2.0, progress=0.5, validity=0.4, per_token=-0.001, per_call=-0.01, per_second=-0.05, per_forbidden=-1.0
    )
    # 2 + .25 + .3 - .1 - .03 - .1 - 1
    assert config.reward(PARTS) == pytest.approx(1.32)


@pytest.mark.parametrize("field", [field.name for field in fields(RewardConfig)])
def test_every_weight_weighs_its_own_component(field: str) -> None:
    values = {
        "outcome": 1.0,
        "progress": 0.5,
        "validity": 0.75,
        "per_token": 100,
        "per_call": 3,
        "per_second": 2.0,
        "per_forbidden": 1,
    }
    alone = RewardConfig(**({"outcome": 0.0} | {field: 10.0}))
    assert alone.reward(PARTS) == pytest.approx(10 * values[field])
