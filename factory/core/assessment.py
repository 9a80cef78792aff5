"""Assessments: k successes of n rollouts of one policy version on one task, and the state they give."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from factory.core.digest import Digest
from factory.core.statistics import Interval, wilson


class TaskStatus(StrEnum):
    """Absolute: no policy changes it."""

    CANDIDATE = "candidate"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    WITHDRAWN = "withdrawn"


class TaskState(StrEnum):
    """Relative to one policy line, derived from its latest assessment."""

    UNASSESSED = "unassessed"
    TOO_HARD = "too hard"
    FRONTIER = "frontier"
    MASTERED = "mastered"


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Successes among scored rollouts; masked ones are counted apart and never in n."""

    task: Digest
    line: str
    policy: Digest
    """Digest of the policy version's weights."""
    successes: int
    rollouts: int
    masked: int = 0
    unparsed: int = 0
    """Rollouts without one valid action: cannot act, as opposed to too hard."""
    temperature: float = 1.0
    image: Digest = ""
    backend: str = ""

    @property
    def interval(self) -> Interval:
        """Wilson 95 % interval of the success rate. Raises ValueError without a scored rollout."""
        return wilson(self.successes, self.rollouts)

    @property
    def state(self) -> TaskState:
        """Zero variance is no signal: all failed is too hard, all solved is mastered."""
        if self.rollouts == 0:
            return TaskState.UNASSESSED
        if self.successes == 0:
            return TaskState.TOO_HARD
        return TaskState.MASTERED if self.successes == self.rollouts else TaskState.FRONTIER


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a filter measured about a task, with the rule that judged it."""

    filter: str
    """`validity`, `contamination`, `duplicates`, `determinism`, `loopholes`, `leaks`."""
    rule: str
    """The rule in words, with its thresholds."""
    passed: bool
    reason: str
    """Empty when passed; else one line for people."""
    data: dict[str, object]
    """JSON of what was measured."""
