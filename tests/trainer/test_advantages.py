"""Expected values by hand; the faults are those of public trainers (groups by position, masked votes, zero variance)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.errors import UserError
from factory.core.outcome import Termination
from factory.core.reward import RewardConfig
from trainer.advantages import AdvantageConfig, Scored, group_advantages, scored

from .support import make_trajectory


def votes(group: str, *rewards: float | None) -> list[Scored]:
    return [Scored(group=group, reward=reward, solved=reward == 1) for reward in rewards]


def test_masked_members_have_no_vote() -> None:
    result = group_advantages(votes("a", 1, 1, 0, None), AdvantageConfig())
    assert result.values == (pytest.approx(1 / 3), pytest.approx(1 / 3), pytest.approx(-2 / 3), None)
    assert result.informative == {"a"}


def test_one_survivor_is_dropped() -> None:
    result = group_advantages(votes("a", 1, None, None) + votes("b", None, None), AdvantageConfig())
    assert result.values == (None,) * 5
    assert result.starved == {"a", "b"} and not result.informative


@pytest.mark.parametrize("scale", ["none", "std"])
@pytest.mark.parametrize("reward", [0.0, 1.0, 0.3])
def test_a_uniform_group_contributes_nothing(scale: str, reward: float) -> None:
    result = group_advantages(votes("a", *[reward] * 4), AdvantageConfig(scale=scale, shaped_failures=True))
    assert result.values == (None,) * 4 and result.uniform == {"a"}


def test_scaling_by_the_deviation() -> None:
    result = group_advantages(votes("a", 1, 0, 0, 0), AdvantageConfig(scale="std"))
    # mean 1/4, population variance 3/16
    assert result.values[0] == pytest.approx((3 / 4) / math.sqrt(3 / 16))
    assert result.values[1] == pytest.approx((-1 / 4) / math.sqrt(3 / 16))


def test_the_floor_of_the_deviation() -> None:
    samples = [Scored(group="a", reward=reward, solved=True) for reward in (1.0, 1.0 + 2e-9)]
    result = group_advantages(samples, AdvantageConfig(scale="std", std_floor=1e-3))
    assert result.values[1] == pytest.approx(1e-9 / 1e-3, rel=1e-5)


def test_leave_one_out() -> None:
    result = group_advantages(votes("a", 1, 1, 0), AdvantageConfig(baseline="leave-one-out"))
    assert result.values == (pytest.approx(1 - 1 / 2), pytest.approx(1 - 1 / 2), pytest.approx(0 - 1))


def test_shaping_alone_teaches_only_when_asked() -> None:
    samples = [Scored(group="a", reward=reward, solved=False) for reward in (0.0, 0.3)]
    assert group_advantages(samples, AdvantageConfig()).values == (None, None)
    asked = group_advantages(samples, AdvantageConfig(shaped_failures=True))
    assert asked.values == (pytest.approx(-0.15), pytest.approx(0.15))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, None])), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_order_does_not_matter(samples: list[tuple[str, float | None]], random) -> None:  # type: ignore[no-untyped-def]
    given_order = [Scored(group=group, reward=reward, solved=reward == 1.0) for group, reward in samples]
    order = list(range(len(given_order)))
    random.shuffle(order)
    straight = group_advantages(given_order, AdvantageConfig())
    shuffled = group_advantages([given_order[index] for index in order], AdvantageConfig())
    assert [straight.values[index] for index in order] == list(shuffled.values)
    assert straight.informative == shuffled.informative


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=9))
def test_advantages_of_a_group_sum_to_zero(rewards: list[float]) -> None:
    values = [value for value in group_advantages(votes("a", *rewards), AdvantageConfig()).values if value is not None]
    assert math.fsum(values) == pytest.approx(0, abs=1e-12)


def test_a_reward_must_be_finite() -> None:
    with pytest.raises(ValueError, match="sample 1"):
        group_advantages(votes("a", 1, math.inf), AdvantageConfig())


def test_what_a_trajectory_votes() -> None:
    half = make_trajectory(prompt=[1], sampled=[2], logprobs=[-1.0], solved=False, progress=0.5, group="g")
    assert scored(half, RewardConfig(progress=0.2), AdvantageConfig()) == Scored(
        group="g", reward=pytest.approx(0.1), solved=False
    )
    lost = make_trajectory(prompt=[1], sampled=[2], logprobs=[-1.0], solved=None, group="g")
    assert scored(lost, RewardConfig(), AdvantageConfig()) == Scored(group="g", reward=None, solved=False)


@pytest.mark.parametrize(
    ("config", "rewards"),
    [
        (AdvantageConfig(), (1.0, 0.25)),
        (AdvantageConfig(truncated="score"), (1.0, 0.25)),
        (AdvantageConfig(truncated="mask"), (None, None)),
        (AdvantageConfig(truncated="penalise", truncation_penalty=0.75), (0.25, -0.5)),
    ],
)
def test_an_episode_cut_at_a_token_limit_earns_what_the_settings_say(
    config: AdvantageConfig, rewards: tuple[float | None, float | None]
) -> None:
    """Cut episodes, one whose files pass all the same; whole ones with the same verdicts are not touched."""
    weights = RewardConfig(progress=0.5, outcome=0.5)
    for solved, cut, whole in zip((True, False), rewards, (1.0, 0.25), strict=True):
        made = make_trajectory(prompt=[1], sampled=[2], logprobs=[-1.0], solved=solved, progress=1.0 if solved else 0.5)
        limited = replace(made, outcome=replace(made.outcome, reason=Termination.TOKEN_LIMIT))
        assert scored(limited, weights, config) == Scored(group="g", reward=cut, solved=solved and cut is not None)
        assert scored(made, weights, config) == Scored(group="g", reward=whole, solved=solved)


@pytest.mark.parametrize(
    "wrong",
    [{"baseline": "median"}, {"scale": "max"}, {"std_floor": 0.0}, {"truncated": "drop"}, {"truncation_penalty": 0.0}],
)
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        AdvantageConfig(**wrong)  # type: ignore[arg-type]
