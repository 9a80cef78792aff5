"""The moving frontier: which tasks to train on next, from what rollouts have shown so far.

Each task has a Beta posterior over its success rate p under the current policy. Evidence fades, because p moves.
GRPO's signal is the reward's variance, so a task is worth E[p(1-p)] = ab / ((a+b)(a+b+1)) under Beta(a, b).
Tasks whose remembered rollouts all failed or all passed leave the frontier; a small share of the draws goes to them,
the longest unseen first by the same formula, and mixed groups bring a task back as the evidence against it fades.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from factory.core.assessment import TaskState
from factory.core.digest import Digest
from factory.core.errors import UserError
from factory.core.streams import stream


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig:
    """How prompts are drawn."""

    prior: float = 0.5
    """Both parameters of the Beta prior, in rollouts (0.5: Jeffreys)."""
    memory: float = 0.95
    """Share of the evidence that survives one training step."""
    edge: float = 0.04
    """A task is on the frontier while the rarer outcome makes up at least this share of its evidence."""
    explore: float = 0.06
    """Share of the draws that goes to tasks outside the frontier."""

    def __post_init__(self) -> None:
        if not self.prior > 0:
            raise UserError("curriculum.prior", self.prior, "a positive number")
        if not 0 < self.memory <= 1:
            raise UserError("curriculum.memory", self.memory, "a number above 0 and at most 1")
        if not 0 < self.edge < 0.5:
            raise UserError("curriculum.edge", self.edge, "a number between 0 and 0.5")
        if not 0 <= self.explore < 1:
            raise UserError("curriculum.explore", self.explore, "a number from 0 to below 1")


@dataclass
class Belief:
    """What is remembered of one task."""

    successes: float
    failures: float
    seen: int = 0
    """Training step of the last evidence."""


class Curriculum:
    """Draws tasks. Deterministic: a draw depends on the seed, the step, the round and the evidence alone."""

    def __init__(self, evidence: Mapping[Digest, tuple[int, int]], config: CurriculumConfig, *, seed: int) -> None:
        """`evidence` gives successes and scored rollouts of each task of the pool, from its latest assessment.

        Raises UserError when the pool is empty.
        """
        if not evidence:
            raise UserError("tasks", 0, "at least one accepted, assessed training task")
        self.config = config
        self.seed = seed
        self.beliefs = {task: Belief(float(wins), float(count - wins)) for task, (wins, count) in sorted(evidence.items())}

    def value(self, task: Digest, step: int) -> float:
        """E[p(1-p)] of the task at `step`."""
        belief = self.beliefs[task]
        fade = self.config.memory ** max(0, step - belief.seen)
        a = self.config.prior + fade * belief.successes
        b = self.config.prior + fade * belief.failures
        return a * b / ((a + b) * (a + b + 1))

    def state(self, task: Digest) -> TaskState:
        """Where the task stands for the policy in training."""
        belief = self.beliefs[task]
        total = belief.successes + belief.failures
        if total == 0:
            return TaskState.UNASSESSED
        if belief.successes < self.config.edge * total:
            return TaskState.TOO_HARD
        return TaskState.MASTERED if belief.failures < self.config.edge * total else TaskState.FRONTIER

    def counts(self) -> dict[str, int]:
        """How many tasks of the pool stand in each state."""
        counts = {state.value: 0 for state in TaskState}
        for task in self.beliefs:
            counts[self.state(task).value] += 1
        return counts

    def draw(self, count: int, *, step: int, round: int = 0, exclude: Iterable[Digest] = ()) -> list[Digest]:
        """Up to `count` different tasks, none of `exclude`; fewer only when the pool has no more."""
        draws = stream(self.seed, "curriculum", step, round)
        barred = set(exclude)
        frontier = [task for task in self.beliefs if task not in barred and self.state(task) is TaskState.FRONTIER]
        outside = [task for task in self.beliefs if task not in barred and self.state(task) is not TaskState.FRONTIER]
        wanted = sum(draws.random() < self.config.explore for _ in range(count))
        wanted = min(max(wanted, count - len(frontier)), len(outside))
        keyed = [self._keyed(tasks, step, draws.random) for tasks in (frontier, outside)]
        return keyed[0][: count - wanted] + keyed[1][:wanted]

    def _keyed(self, tasks: list[Digest], step: int, uniform: Any) -> list[Digest]:
        """A weighted order without replacement (Efraimidis and Spirakis 2006): largest u^(1/weight) first."""
        keys = {task: math.log(1.0 - uniform()) / self.value(task, step) for task in tasks}
        return sorted(tasks, key=lambda task: (-keys[task], task))

    def observe(self, task: Digest, *, successes: int, rollouts: int, step: int) -> None:
        """Take in scored rollouts of a task; masked ones are not among them."""
        belief = self.beliefs[task]
        fade = self.config.memory ** max(0, step - belief.seen)
        belief.successes = fade * belief.successes + successes
        belief.failures = fade * belief.failures + rollouts - successes
        belief.seen = step

    def retire(self, task: Digest) -> None:
        """Never draw a task again: it is broken, or no longer accepted. Without effect when it is not in the pool."""
        self.beliefs.pop(task, None)

    def dump(self) -> dict[str, Any]:
        """All that later draws depend on besides the configuration and the seed."""
        return {task: asdict(belief) for task, belief in self.beliefs.items()}

    def load(self, value: Mapping[str, Any]) -> None:
        """Continue from `dump()`."""
        self.beliefs = {task: Belief(**belief) for task, belief in value.items()}
