"""Groups with signal, a bounded search for them, and an honest shortfall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from factory.agent.rollout import RolloutRequest
from factory.core.outcome import Outcome, OutcomeKind, Termination
from factory.core.reward import RewardConfig
from factory.core.trajectory import Trajectory
from trainer.advantages import AdvantageConfig
from trainer.batches import row_weights
from trainer.collect import Collector, Rollouts
from trainer.curriculum import Curriculum, CurriculumConfig
from trainer.losses import LossConfig

from .support import make_task, make_trajectory

TASKS = {task.digest: task for task in map(make_task, range(12))}


class Scripted:
    """Rollouts whose outcome is written down: for each task, the outcomes of its members (None is masked)."""

    def __init__(self, outcomes: dict[str, list[bool | None]], broken: frozenset[tuple[str, int]] = frozenset()) -> None:
        self.outcomes, self.broken = outcomes, broken
        self.requests: list[RolloutRequest] = []

    def __call__(self, requests: Sequence[RolloutRequest]) -> list[Trajectory]:
        self.requests.extend(requests)
        return [
            make_trajectory(
                prompt=[1],
                sampled=[2, 3],
                logprobs=[-1.0, float("-inf") if (request.task.digest, request.member) in self.broken else -1.0],
                solved=self.outcomes[request.task.digest][request.member],
                group=request.group,
                member=request.member,
                task=request.task.digest,
            )
            for request in requests
        ]


def collector(
    rollouts: Rollouts,
    *,
    groups: int,
    rounds: int,
    tasks: Sequence[str],
    seed: int = 7,
    advantage: AdvantageConfig | None = None,
) -> tuple[Collector, Curriculum]:
    curriculum = Curriculum(dict.fromkeys(tasks, (2, 4)), CurriculumConfig(explore=0.0), seed=0)
    return (
        Collector(
            tasks=TASKS.__getitem__,
            rollouts=rollouts,
            curriculum=curriculum,
            reward=RewardConfig(),
            advantage=advantage or AdvantageConfig(),
            groups=groups,
            samples=4,
            rounds=rounds,
            train_reasoning=True,
            seed=seed,
        ),
        curriculum,
    )


def test_uniform_groups_are_replaced_until_the_batch_is_full() -> None:
    names = sorted(TASKS)
    mixed, flat = [True, False, False, True], [True] * 4
    rollouts = Scripted({task: mixed if number % 3 else flat for number, task in enumerate(names)})
    subject, _ = collector(rollouts, groups=6, rounds=9, tasks=names)
    result = subject.collect(1)
    assert len(result.groups) == 6 and result.shortfall == 0
    assert result.drawn == 6 + result.uniform and result.rounds > 1
    assert all([row.advantage for row in group] == [0.5, -0.5, -0.5, 0.5] for group in result.groups)


def test_the_search_ends_and_the_shortfall_is_told() -> None:
    names = sorted(TASKS)
    rollouts = Scripted(dict.fromkeys(names, [False] * 4))
    subject, _ = collector(rollouts, groups=3, rounds=2, tasks=names)
    result = subject.collect(1)
    assert (len(result.groups), result.shortfall, result.rounds, result.drawn) == (0, 3, 2, 6)
    assert len({request.task.digest for request in rollouts.requests}) == 6  # no task twice in one step


def test_a_small_pool_ends_the_search_early() -> None:
    names = sorted(TASKS)[:2]
    subject, _ = collector(Scripted(dict.fromkeys(names, [True, False] * 2)), groups=5, rounds=9, tasks=names)
    result = subject.collect(1)
    assert (len(result.groups), result.shortfall, result.rounds) == (2, 3, 1)


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("dapo", 1 / 6),  # three rows of two tokens are left
        ("grpo", 1 / (3 * 2)),
        ("dr_grpo", 1 / (3 * 10)),
    ],
)
def test_what_carries_no_signal_is_in_no_denominator(aggregation: str, expected: float) -> None:
    """Of four groups asked for, three are rolled out: one mixed with a masked member, one uniform, one with one survivor."""
    mixed, flat, starved = sorted(TASKS)[:3]
    outcomes = {mixed: [True, None, False, False], flat: [True] * 4, starved: [None, True, None, None]}
    subject, _ = collector(Scripted(outcomes), groups=4, rounds=1, tasks=sorted(outcomes))
    result = subject.collect(1)
    assert (result.shortfall, result.uniform, result.starved) == (3, 1, 1)
    rows = [row for group in result.groups for row in group]
    weights = row_weights(rows, LossConfig(aggregation=aggregation, constant_length=10))
    assert weights == pytest.approx([expected] * 3)


def test_masked_and_quarantined_rollouts_have_no_vote_and_no_row() -> None:
    (task,) = sorted(TASKS)[:1]
    rollouts = Scripted({task: [True, False, None, True]}, broken=frozenset({(task, 3)}))
    subject, curriculum = collector(rollouts, groups=1, rounds=1, tasks=[task])
    result = subject.collect(1)
    (rows,) = result.groups
    assert [row.advantage for row in rows] == [0.5, -0.5]  # mean of the two that are left
    assert result.quarantined == 1
    belief = curriculum.beliefs[task]  # 2 of 4 remembered, faded by one step, and 2 of 3 scored now
    assert belief.successes == pytest.approx(0.95 * 2 + 2) and belief.failures == pytest.approx(0.95 * 2 + 1)


@pytest.mark.parametrize(
    ("truncated", "advantages"),
    [
        ("score", [0.5, -0.5, -0.5, 0.5]),
        ("mask", [1 / 3, -2 / 3, 1 / 3]),  # the third has no vote and no row
        ("penalise", [0.625, -0.375, -0.875, 0.625]),  # rewards 1, 0, -0.5, 1
    ],
)
def test_a_truncated_member_counts_as_the_settings_say_and_for_the_curriculum_always(
    truncated: str, advantages: list[float]
) -> None:
    (task,) = sorted(TASKS)[:1]
    scripted = Scripted({task: [True, False, False, True]})

    def rollouts(requests: Sequence[RolloutRequest]) -> list[Trajectory]:
        made = scripted(requests)
        made[2] = replace(made[2], outcome=replace(made[2].outcome, reason=Termination.TOKEN_LIMIT))
        return made

    config = AdvantageConfig(truncated=truncated, truncation_penalty=0.5)  # type: ignore[arg-type]
    subject, curriculum = collector(rollouts, groups=1, rounds=1, tasks=[task], advantage=config)
    (rows,) = subject.collect(1).groups
    assert [row.advantage for row in rows] == pytest.approx(advantages)
    assert curriculum.beliefs[task].failures == pytest.approx(0.95 * 2 + 2)


def test_every_rollout_has_its_own_seed_and_the_same_one_again() -> None:
    names = sorted(TASKS)[:3]
    seeds = []
    for seed, step in ((7, 1), (7, 1), (7, 2), (8, 1)):
        rollouts = Scripted(dict.fromkeys(names, [True, False] * 2))
        collector(rollouts, groups=3, rounds=1, tasks=names, seed=seed)[0].collect(step)
        seeds.append([request.seed for request in rollouts.requests])
    assert seeds[0] == seeds[1]
    assert len({*seeds[0], *seeds[2], *seeds[3]}) == 3 * 3 * 4


def test_a_task_that_proves_broken_teaches_nothing_and_is_not_drawn_again() -> None:
    """One member of a group meets the broken task, the others score: none of them counts."""
    broken, sound = sorted(TASKS)[:2]
    mixed = [True, False, False, True]
    scripted = Scripted({broken: mixed, sound: mixed})

    def rollouts(requests: Sequence[RolloutRequest]) -> list[Trajectory]:
        fault = Outcome(kind=OutcomeKind.INVALID_TASK, reason=Termination.VERIFIER_FAILED, fault="InvalidTask: no such check")
        return [replace(one, outcome=fault) if one.task == broken and one.member == 0 else one for one in scripted(requests)]

    subject, curriculum = collector(rollouts, groups=2, rounds=2, tasks=[broken, sound])
    result = subject.collect(1)
    assert result.invalid == {broken: "InvalidTask: no such check"}
    assert [len(group) for group in result.groups] == [4] and result.shortfall == 1
    assert list(curriculum.beliefs) == [sound]
    assert broken not in subject.collect(2).invalid
