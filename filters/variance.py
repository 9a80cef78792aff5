"""The frontier of one policy line, and which of its tasks to assess again as the policy moves.

GRPO learns from the spread of rewards within a group, p(1-p): a task that is always or never solved leaves the
line's curriculum. It stays in the registry and is looked at again, since p moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from factory.core.assessment import Assessment, TaskState
from factory.core.digest import Digest
from factory.core.streams import stream_seed


@dataclass(frozen=True, kw_only=True)
class Seen:
    """An assessment with the step of the policy version that it measured."""

    assessment: Assessment
    step: int


@dataclass(frozen=True, kw_only=True)
class ReassessmentConfig:
    """When a task is looked at again. Ages are optimiser steps since its latest assessment."""

    budget: int = 64
    """Most tasks assessed again at once."""
    frontier_age: int = 10
    too_hard_age: int = 20
    mastered_age: int = 40
    moved: float = 0.1
    """Mean change of the success rate, on tasks assessed before and after, that makes a zero-variance task due at
    once: upwards those that were too hard, downwards those that were mastered."""
    witnesses: int = 8
    """Least number of tasks assessed before and after for their mean change to count."""


@dataclass(frozen=True)
class Movement:
    """How far success rates moved."""

    mean: float
    """Mean change of the success rate, in [-1, 1]; 0 without tasks."""
    tasks: int
    """Tasks that were assessed before and after."""


def states(seen: Iterable[Seen]) -> dict[Digest, TaskState]:
    """The state of each task by its latest assessment that has a scored rollout."""
    return {task: found.assessment.state for task, found in _latest(seen).items()}


def curriculum(seen: Iterable[Seen]) -> list[Digest]:
    """Tasks on the frontier, the most spread of rewards, p(1-p), first (ties by digest)."""
    frontier = [found.assessment for found in _latest(seen).values() if found.assessment.state is TaskState.FRONTIER]
    return [found.task for found in sorted(frontier, key=lambda found: (-_spread(found), found.task))]


def movement(seen: Iterable[Seen], since: int) -> Movement:
    """How success rates moved after step `since`: each task's latest rate against its last one up to `since`."""
    before: dict[Digest, Seen] = {}
    after: dict[Digest, Seen] = {}
    for found in _scored(seen):
        side = before if found.step <= since else after
        side[found.assessment.task] = found
    changes = [_rate(after[task].assessment) - _rate(before[task].assessment) for task in sorted(after.keys() & before.keys())]
    return Movement(math.fsum(changes) / len(changes) if changes else 0.0, len(changes))


def due(
    tasks: Iterable[Digest], seen: Sequence[Seen], *, step: int, seed: int, config: ReassessmentConfig | None = None
) -> list[Digest]:
    """Which of a line's `tasks` to assess at `step`, most urgent first, at most `config.budget`.

    Never assessed ones come first; then those longest past their age, or whose policy moved most; ties are
    drawn from `seed`. The same arguments give the same list, in whatever order `tasks` come.
    """
    config = config or ReassessmentConfig()
    latest = _latest(seen)
    moves = {since: movement(seen, since) for since in {found.step for found in latest.values()}}
    urgencies = {
        task: _urgency(latest[task], step, moves[latest[task].step], config) if task in latest else math.inf
        for task in set(tasks)
    }
    chosen = [task for task, urgency in urgencies.items() if urgency >= 1]
    chosen.sort(key=lambda task: (-urgencies[task], stream_seed(seed, "reassess", step, task)))
    return chosen[: config.budget]


def _urgency(found: Seen, step: int, moved: Movement, config: ReassessmentConfig) -> float:
    """1 and more: due."""
    state = found.assessment.state
    ages = {
        TaskState.FRONTIER: config.frontier_age,
        TaskState.TOO_HARD: config.too_hard_age,
        TaskState.MASTERED: config.mastered_age,
    }
    age = (step - found.step) / ages[state]
    direction = {TaskState.FRONTIER: 0.0, TaskState.TOO_HARD: 1.0, TaskState.MASTERED: -1.0}[state]
    counts = moved.tasks >= config.witnesses
    return max(age, direction * moved.mean / config.moved if counts else 0.0)


def _scored(seen: Iterable[Seen]) -> list[Seen]:
    """Assessments with a scored rollout, by step; those of one step keep their order."""
    return sorted((found for found in seen if found.assessment.rollouts), key=lambda found: found.step)


def _latest(seen: Iterable[Seen]) -> dict[Digest, Seen]:
    return {found.assessment.task: found for found in _scored(seen)}


def _rate(assessment: Assessment) -> float:
    return assessment.successes / assessment.rollouts


def _spread(assessment: Assessment) -> float:
    return _rate(assessment) * (1 - _rate(assessment))
