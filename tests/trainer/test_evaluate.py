"""Counts and intervals by hand; the loop itself runs in `test_train.py`."""

from __future__ import annotations

import json

import pytest

from factory.core.errors import UserError
from trainer.evaluate import Evaluation, EvaluationConfig, TaskResult, count, paired_gain

from .support import make_trajectory


def result(task: str, solved: int, *, scored: int = 4, part: str = "holdout-families", **more: int) -> TaskResult:
    counts = {"masked": 0, "held_out_solved": 0, "held_out_scored": 0, "judged_solved": 0} | more
    return TaskResult(task=task, part=part, solved=solved, scored=scored, **counts)


def test_masked_rollouts_are_counted_apart() -> None:
    outcomes: list[tuple[bool | None, bool | None]] = [(True, True), (True, False), (False, None), (None, None)]
    trajectories = [
        make_trajectory(prompt=[1], sampled=[2], logprobs=[-1.0], solved=solved, held_out=held_out, task="a" * 64)
        for solved, held_out in outcomes
    ]
    assert count(trajectories, "holdout-families") == result(
        "a" * 64, 2, scored=3, masked=1, held_out_solved=1, held_out_scored=2, judged_solved=2
    )


def test_rates_are_means_over_tasks_and_parts_stand_apart() -> None:
    evaluation = Evaluation(
        policy="tiny@0",
        tasks=(
            result("a", 4),
            result("b", 1, scored=2, masked=2),  # weighs as much as any other task
            result("c", 0, part="holdout-compositions"),
            result("d", 0, scored=0, masked=4),  # says nothing
        ),
    )
    assert evaluation.rate("holdout-families").mean == pytest.approx((1 + 1 / 2) / 2)
    assert evaluation.rate("holdout-compositions").mean == 0
    assert evaluation.rate().mean == pytest.approx(1.5 / 3)
    with pytest.raises(ValueError, match="no values"):
        evaluation.rate("train")


def test_gap_counts_what_the_held_out_verifier_did_not_accept() -> None:
    one = result("a", 4, held_out_solved=2, held_out_scored=4, judged_solved=4)
    two = result("b", 3, held_out_solved=1, held_out_scored=2, judged_solved=1)
    gap = Evaluation(policy="p", tasks=(one, two)).gap()
    assert gap is not None and gap.mean == pytest.approx((2 / 4 + 0) / 2)
    assert Evaluation(policy="p", tasks=(result("a", 1),)).gap() is None


def test_pairing_takes_out_the_spread_between_tasks() -> None:
    """Half the tasks at 0 and half at 3/4, each better by 1/4: the gain is exactly 1/4, though the rates' intervals overlap."""
    before = Evaluation(policy="a", tasks=tuple(result(str(n), 3 * (n % 2)) for n in range(20)))
    after = Evaluation(policy="b", tasks=tuple(result(str(n), 3 * (n % 2) + 1) for n in range(20)))
    gain = paired_gain(before, after)
    assert (gain.mean, gain.low, gain.high) == (0.25, 0.25, 0.25)
    assert before.rate().high > after.rate().low
    with pytest.raises(ValueError, match="no values"):
        paired_gain(before, Evaluation(policy="c", tasks=(result("other", 1),)))


def test_json_round_trip() -> None:
    evaluation = Evaluation(policy="p", tasks=(result("a", 4), result("b", 0, scored=0, masked=4, part="holdout-compositions")))
    value = json.loads(json.dumps(evaluation.as_json()))
    assert Evaluation.from_json(value) == evaluation
    assert value["parts"]["holdout-compositions"]["rate"] is None
    assert value["parts"]["all"] == {
        "tasks": 1,
        "rollouts": 4,
        "masked": 4,
        "rate": {"mean": 1.0, "low": 1.0, "high": 1.0},
        "verifier_gap": None,
    }


def test_settings_are_checked() -> None:
    with pytest.raises(UserError, match="samples"):
        EvaluationConfig(samples=0)
    with pytest.raises(UserError, match="samples"):
        EvaluationConfig(greedy=True)
    assert EvaluationConfig(greedy=True, samples=1)
