"""Draws follow E[p(1-p)], fade, explore, and repeat from the seed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.assessment import TaskState
from factory.core.errors import UserError
from trainer.curriculum import Curriculum, CurriculumConfig

POOL = {"hard": (0, 8), "one": (1, 8), "half": (4, 8), "most": (7, 8), "all": (8, 8), "new": (0, 0)}


def test_value_is_the_expectation_under_the_posterior() -> None:
    curriculum = Curriculum(POOL, CurriculumConfig(prior=1.0, memory=1.0), seed=0)
    # Beta(5, 5): E[p] - E[p^2] = 1/2 - (25/100 + 1/44) = 0.22727...
    assert curriculum.value("half", 0) == pytest.approx(0.5 - (0.25 + 0.25 / 11))
    assert curriculum.value("new", 0) == pytest.approx(1 / 6)
    assert curriculum.value("hard", 0) == pytest.approx(9 / (10 * 11))


def test_states() -> None:
    curriculum = Curriculum(POOL, CurriculumConfig(), seed=0)
    states = {task: curriculum.state(task) for task in POOL}
    assert states == {
        "hard": TaskState.TOO_HARD,
        "one": TaskState.FRONTIER,
        "half": TaskState.FRONTIER,
        "most": TaskState.FRONTIER,
        "all": TaskState.MASTERED,
        "new": TaskState.UNASSESSED,
    }
    assert curriculum.counts() == {"unassessed": 1, "too hard": 1, "frontier": 3, "mastered": 1}


def test_a_task_leaves_when_p_moves_and_comes_back_when_it_returns() -> None:
    curriculum = Curriculum({"a": (4, 8)}, CurriculumConfig(memory=0.8), seed=0)
    for step in range(1, 10):
        curriculum.observe("a", successes=8, rollouts=8, step=step)
    assert curriculum.state("a") is TaskState.MASTERED
    curriculum.observe("a", successes=5, rollouts=8, step=12)
    assert curriculum.state("a") is TaskState.FRONTIER


def test_forgetting_makes_old_verdicts_worth_another_look() -> None:
    curriculum = Curriculum(POOL, CurriculumConfig(memory=0.9), seed=0)
    assert curriculum.value("hard", 30) > 2 * curriculum.value("hard", 0)
    curriculum.observe("hard", successes=0, rollouts=8, step=30)
    assert curriculum.value("hard", 30) < curriculum.value("all", 30)


def test_draws_are_different_tasks_of_the_frontier_first() -> None:
    curriculum = Curriculum(POOL, CurriculumConfig(explore=0.0), seed=0)
    assert set(curriculum.draw(3, step=1)) == {"one", "half", "most"}
    assert set(curriculum.draw(99, step=1)) == set(POOL)
    assert "half" not in curriculum.draw(99, step=1, exclude=["half"])


def test_shares_of_draws() -> None:
    curriculum = Curriculum(POOL, CurriculumConfig(explore=0.25), seed=3)
    drawn = Counter(task for step in range(4000) for task in curriculum.draw(1, step=0, round=step))
    outside = sum(drawn[task] for task in ("hard", "all", "new"))
    assert outside / 4000 == pytest.approx(0.25, abs=0.03)
    ratio = curriculum.value("half", 0) / curriculum.value("one", 0)
    assert drawn["half"] / drawn["one"] == pytest.approx(ratio, rel=0.15)


def test_draws_repeat_from_seed_and_state_and_differ_by_seed_step_and_round() -> None:
    pool = {f"task-{number}": (number % 7 + 1, 8) for number in range(60)}
    first, second = (Curriculum(pool, CurriculumConfig(), seed=1) for _ in range(2))
    first.observe("task-3", successes=2, rollouts=7, step=4)
    second.load(first.dump())
    assert first.draw(20, step=5) == second.draw(20, step=5)
    other = Curriculum(dict(reversed(pool.items())), CurriculumConfig(), seed=1)
    assert other.draw(20, step=5) == Curriculum(pool, CurriculumConfig(), seed=1).draw(20, step=5)
    draws = {
        tuple(Curriculum(pool, CurriculumConfig(), seed=seed).draw(20, step=step, round=round))
        for seed, step, round in ((1, 5, 0), (2, 5, 0), (1, 6, 0), (1, 5, 1))
    }
    assert len(draws) == 4


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), max_size=20))
def test_values_stay_within_bounds(history: list[tuple[int, int]]) -> None:
    curriculum = Curriculum({"a": (0, 0)}, CurriculumConfig(), seed=0)
    step = 0
    for successes, gap in history:
        step += gap
        curriculum.observe("a", successes=successes, rollouts=8, step=step)
        assert 0 < curriculum.value("a", step) <= 0.25


@pytest.mark.parametrize("wrong", [{"prior": 0.0}, {"memory": 0.0}, {"edge": 0.5}, {"explore": 1.0}])
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        CurriculumConfig(**wrong)


def test_an_empty_pool_is_a_mistake() -> None:
    with pytest.raises(UserError, match="tasks"):
        Curriculum({}, CurriculumConfig(), seed=0)
