"""Training's own defaults survive a settings file that changes a neighbouring field."""

from __future__ import annotations

import pytest

from factory.core.errors import UserError
from factory.settings import section
from trainer.grpo import GrpoConfig


def test_a_nested_table_keeps_the_defaults_of_its_place() -> None:
    table = {"steps": 3, "rollout": {"max_context": 99, "sampling": {"max_tokens": 7}}, "reward": {"progress": 0.5}}
    config = section(GrpoConfig, table, "train")
    plain = GrpoConfig(steps=3)
    assert (config.rollout.max_context, config.rollout.sampling.max_tokens) == (99, 7)
    assert config.rollout.invalid_calls == plain.rollout.invalid_calls == "end"
    assert config.rollout.held_out is plain.rollout.held_out is False
    assert config.reward.progress == 0.5 and config.reward.per_call == plain.reward.per_call != 0


@pytest.mark.parametrize("name", ["top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"])
def test_sampling_that_the_learner_could_not_match_is_no_setting(name: str) -> None:
    with pytest.raises(UserError, match=rf"train\.rollout\.sampling\.{name}"):
        section(GrpoConfig, {"steps": 1, "rollout": {"sampling": {name: 1}}}, "train")


def test_a_mistake_deep_in_a_table_names_its_field() -> None:
    with pytest.raises(UserError, match=r"train\.learner\.loss\.clip_high"):
        section(GrpoConfig, {"steps": 1, "learner": {"loss": {"clip_high": "wide"}}}, "train")
