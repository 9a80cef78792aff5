"""States of a line, and what to assess again."""

from __future__ import annotations

import random

import pytest

from factory.core.assessment import Assessment, TaskState
from factory.core.digest import digest_of
from filters.variance import Movement, ReassessmentConfig, Seen, curriculum, due, movement, states

CONFIG = ReassessmentConfig(budget=100, frontier_age=10, too_hard_age=20, mastered_age=40, moved=0.1, witnesses=2)


def task(number: int) -> str:
    return digest_of(number)


def seen(number: int, k: int, n: int = 8, step: int = 0) -> Seen:
    return Seen(assessment=Assessment(task=task(number), line="tiny", policy="a" * 64, successes=k, rollouts=n), step=step)


def test_zero_variance_leaves_the_curriculum_and_comes_back() -> None:
    history = [seen(1, 0), seen(2, 8), seen(3, 3)]
    assert states(history) == {task(1): TaskState.TOO_HARD, task(2): TaskState.MASTERED, task(3): TaskState.FRONTIER}
    assert curriculum(history) == [task(3)]
    moved = [*history, seen(1, 1, step=10), seen(2, 7, step=10), seen(3, 8, step=10)]
    assert set(curriculum(moved)) == {task(1), task(2)}


def test_the_latest_step_counts_whatever_the_order() -> None:
    history = [seen(1, 8, step=20), seen(1, 0, step=10), seen(1, 0, n=0, step=30)]
    assert states(history) == {task(1): TaskState.MASTERED}


def test_the_widest_spread_comes_first() -> None:
    """p(1-p) by hand: 4/8 gives .25, 2/8 and 6/8 give .1875, 1/8 gives .109."""
    history = [seen(1, 1), seen(2, 2), seen(3, 4), seen(4, 6)]
    order = curriculum(history)
    assert order[0] == task(3) and set(order[1:3]) == {task(2), task(4)} and order[3] == task(1)


def test_movement_by_hand() -> None:
    """Task 1 went 0 to 4/8, task 2 went 2/8 to 4/8; task 3 was never seen again, task 4 not before."""
    history = [
        seen(1, 0),
        seen(2, 2),
        seen(3, 5),
        seen(1, 2, step=5),
        seen(1, 4, step=9),
        seen(2, 4, step=9),
        seen(4, 8, step=9),
    ]
    assert movement(history, 0) == Movement(pytest.approx(0.375), 2)
    assert movement(history, 5) == Movement(pytest.approx((2 / 8 + 2 / 8) / 2), 2)
    assert movement(history, 9) == Movement(0.0, 0)


@pytest.mark.parametrize(("k", "age"), [(4, 10), (0, 20), (8, 40)])
def test_each_state_has_its_age(k: int, age: int) -> None:
    history = [seen(1, k, step=100)]
    assert due([task(1)], history, step=100 + age - 1, seed=0, config=CONFIG) == []
    assert due([task(1)], history, step=100 + age, seed=0, config=CONFIG) == [task(1)]


def test_never_assessed_comes_first_then_the_longest_overdue() -> None:
    history = [seen(1, 4, step=85), seen(2, 4, step=70), seen(3, 0, step=60), seen(4, 8, step=60)]
    expected = [task(9), task(2), task(3), task(1), task(4)]  # never; 3.0, 2.0, 1.5 and 1.0 times their age
    assert due([task(number) for number in (1, 2, 3, 4, 9)], history, step=100, seed=0, config=CONFIG) == expected


def test_an_unscored_assessment_is_none() -> None:
    assert due([task(1)], [seen(1, 0, n=0, step=5)], step=5, seed=0, config=CONFIG) == [task(1)]


def test_a_policy_that_improves_makes_the_too_hard_due() -> None:
    risen = [seen(1, 2), seen(2, 2), seen(1, 4, step=3), seen(2, 4, step=3)]
    history = [*risen, seen(3, 0), seen(4, 8)]
    assert due([task(3), task(4)], history, step=3, seed=0, config=CONFIG) == [task(3)]
    fallen = [seen(1, 4), seen(2, 4), seen(1, 2, step=3), seen(2, 2, step=3), seen(3, 0), seen(4, 8)]
    assert due([task(3), task(4)], fallen, step=3, seed=0, config=CONFIG) == [task(4)]


def test_too_few_witnesses_prove_no_movement() -> None:
    history = [seen(1, 0), seen(1, 8, step=3), seen(3, 0)]
    assert due([task(3)], history, step=3, seed=0, config=CONFIG) == []


def test_the_schedule_is_deterministic_and_bounded() -> None:
    tasks = [task(number) for number in range(50)]
    config = ReassessmentConfig(budget=7)
    first = due(tasks, [], step=1, seed=5, config=config)
    shuffled = random.Random(0).sample(tasks, len(tasks))
    assert due(shuffled, [], step=1, seed=5, config=config) == first and len(first) == 7
    assert due(tasks, [], step=2, seed=5, config=config) != first != due(tasks, [], step=1, seed=6, config=config)
