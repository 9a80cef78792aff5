"""How an episode ended, and what its verifiers saw. Unknown faults are masked: never zero, never one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from factory.core.digest import Digest


class Termination(StrEnum):
    """The closed list of reasons for which an episode ends."""

    SUBMITTED = "submitted"
    TURN_LIMIT = "turn limit"
    TOKEN_LIMIT = "token limit"
    EPISODE_TIME_LIMIT = "episode time limit"
    ACTION_TIME_LIMIT = "action time limit"
    PARSER_REJECTION = "parser rejection"
    INVALID_TOOL_CALL = "invalid tool call"
    TOOL_FAILURE = "tool failure"
    RETRIES_EXHAUSTED = "retries exhausted"
    ENVIRONMENT_LOST = "environment lost"
    VERIFIER_FAILED = "verifier failed"
    VERIFIER_TIME_LIMIT = "verifier time limit"
    CANCELLED = "cancelled"


class OutcomeKind(StrEnum):
    """Scored (the reward is valid), masked (infrastructure failed), or the task itself is invalid."""

    SCORED = "scored"
    MASKED = "masked"
    INVALID_TASK = "invalid task"


MASKING = frozenset(
    {
        Termination.TOOL_FAILURE,
        Termination.RETRIES_EXHAUSTED,
        Termination.ENVIRONMENT_LOST,
        Termination.VERIFIER_FAILED,
        Termination.VERIFIER_TIME_LIMIT,
        Termination.CANCELLED,
    }
)
"""Reasons that say nothing about the policy: such an episode has no reward."""


class CheckState(StrEnum):
    """State of one check. Only `passed` is passed."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


@dataclass(frozen=True)
class Check:
    """One named check of a verifier."""

    name: str
    state: CheckState
    detail: str = ""

    @property
    def passed(self) -> bool:
        return self.state is CheckState.PASSED


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a verifier saw, with evidence enough to audit the score."""

    checks: tuple[Check, ...]
    verifier: Digest
    """Digest of the verifier's bundle."""
    start: Digest
    """Tree in which the episode began."""
    end: Digest
    """Tree that the episode left and that was graded."""
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def passed(self) -> bool:
        """True when there is at least one check and every one passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def progress(self) -> float:
        """Share of checks that passed, in [0, 1]; 0 without checks."""
        return sum(check.passed for check in self.checks) / len(self.checks) if self.checks else 0.0


@dataclass(frozen=True, kw_only=True)
class ResourceUse:
    """What an episode's sandbox used until it was stopped. None is what its back end cannot tell."""

    wall_s: float
    """Seconds in which commands and processes ran."""
    output_bytes: int
    """What they printed, the omitted part too."""
    cpu_s: float | None = None
    """Processor time, seconds, of processes that lived to the end or were waited for: what a killed one took is not in it."""
    memory_bytes: int | None = None
    """Most memory of all processes together; where no kernel counter has it, of the looks that were taken every tenth of a
    second."""
    processes: int | None = None
    """Most processes at once, by the same looks."""
    disk_bytes: int | None = None
    """Room that all files the episode wrote took at its end."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """An episode's end: one kind, one reason, and the verdicts where it was scored."""

    kind: OutcomeKind
    reason: Termination
    verdict: Verdict | None = None
    held_out: Verdict | None = None
    fault: str = ""
    """What failed, for people; empty when scored."""
    verify_s: float = field(default=0.0)
    use: ResourceUse | None = None
    """What the episode's own sandbox used; None when there was none, or it was lost."""

    def __post_init__(self) -> None:
        if self.kind is OutcomeKind.SCORED and (self.verdict is None or self.reason in MASKING):
            raise ValueError(f"a scored outcome needs a verdict and a scoring reason, not {self.reason.value!r}")

    @property
    def solved(self) -> bool:
        """True only for a scored episode whose verdict passed."""
        return self.kind is OutcomeKind.SCORED and self.verdict is not None and self.verdict.passed
