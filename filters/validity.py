"""Validity: the reference solution passes every time, doing nothing does not. No policy changes this."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from factory.agent.environment import Grade, replay
from factory.core.action import Action
from factory.core.assessment import Evidence
from factory.core.blobs import BlobStore, get_json
from factory.core.demonstration import Demonstration
from factory.core.digest import Digest
from factory.core.errors import FactoryError, SandboxError
from factory.core.outcome import CheckState, Outcome, OutcomeKind, Termination, Verdict
from factory.core.task import Task
from sandboxes.contract import Backend
from sandboxes.verification.grade import grade


@dataclass(frozen=True, kw_only=True)
class ValidityConfig:
    """How often, and how patiently."""

    repeats: int = 3
    """Runs of the reference solution; all must pass on both verifiers."""
    masked_retries: int = 2
    """How often one run that the infrastructure spoiled is made again."""
    workers: int = 2
    """Tasks judged at the same time."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What became of one task: evidence, or the fault for which it could not be judged (try again later)."""

    task: Digest
    evidence: Evidence | None
    fault: str = ""


@dataclass(frozen=True)
class Run:
    """One replay with the masked attempts before it."""

    outcome: Outcome
    wall_s: float
    masked: tuple[str, ...]
    """Faults of the attempts that were masked."""

    def record(self) -> dict[str, Any]:
        """JSON for evidence."""
        verdict, held_out = self.outcome.verdict, self.outcome.held_out
        checks = [*(verdict.checks if verdict else ()), *(held_out.checks if held_out else ())]
        return {
            "kind": self.outcome.kind.value,
            "reason": self.outcome.reason.value,
            "passed": verdict.passed if verdict else None,
            "held_out_passed": held_out.passed if held_out else None,
            "progress": round(verdict.progress, 4) if verdict else None,
            "not_passed": [f"{check.name}: {check.state.value}" for check in checks if not check.passed][:10],
            "verifiers": [_verdict_record(found) for found in (verdict, held_out) if found],
            "use": _rounded(vars(self.outcome.use)) if self.outcome.use else None,
            "start": verdict.start if verdict else None,
            "end": verdict.end if verdict else None,
            "wall_s": round(self.wall_s, 4),
            "verify_s": round(self.outcome.verify_s, 4),
            "fault": self.outcome.fault,
            "masked": list(self.masked),
        }

    @property
    def passed_any(self) -> bool:
        """Whether either verifier passed."""
        return any(verdict is not None and verdict.passed for verdict in (self.outcome.verdict, self.outcome.held_out))


def _verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Which bundle said what of every check, and what that took."""
    names = {state.value: [check.name for check in verdict.checks if check.state is state] for state in CheckState}
    checks = {state: found for state, found in names.items() if found}
    return _rounded({"verifier": verdict.verifier, "checks": checks, "wall_s": verdict.wall_s, "cpu_s": verdict.cpu_s})


def _rounded(record: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in record.items()}


def check_validity(
    task: Task, *, backend: Backend, blobs: BlobStore, config: ValidityConfig | None = None, untouched: Grade = grade
) -> Evidence:
    """Replay the no-op once and the reference solution `repeats` times, each in a fresh sandbox; stop at the first failure.

    `untouched` grades the no-op; a SharedGrade hands its verdict on to other filters.
    Raises SandboxError when a run stayed masked (the task is not judged), NotFound when its solution is not stored.
    """
    config = config or ValidityConfig()
    gold = solution(task, blobs)
    noop = run(task, (), backend, blobs, config.masked_retries, untouched)
    golds: list[Run] = []
    fault = _noop_fault(noop)
    while not fault and len(golds) < config.repeats:
        golds.append(run(task, gold, backend, blobs, config.masked_retries))
        fault = _gold_fault(task, golds)
    data: dict[str, object] = {
        "gold": [found.record() for found in golds],
        "no_op": noop.record(),
        "gold_passed": sum(_passed(task, found.outcome) for found in golds),
        "repeats": config.repeats,
        "held_out": task.held_out is not None,
        "end_trees": len({found.outcome.verdict.end for found in golds if found.outcome.verdict}),
        "masked": sum(len(found.masked) for found in (noop, *golds)),
        "files": task.environment.files,
        "image": backend.resolve(task.environment.image).digest,
        "backend": backend.name,
    }
    rule = f"the reference solution passes {config.repeats} of {config.repeats} on every verifier; doing nothing passes none"
    return Evidence(filter="validity", rule=rule, passed=not fault, reason=fault, data=data)


def check_validity_many(
    tasks: Sequence[Task],
    *,
    backend: Backend,
    blobs: BlobStore,
    config: ValidityConfig | None = None,
    untouched: Grade = grade,
) -> list[Judged]:
    """Judge tasks in a pool of threads, in the order of `tasks`. A task that can not be judged sinks no other."""
    config = config or ValidityConfig()

    def judge(task: Task) -> Evidence:
        return check_validity(task, backend=backend, blobs=blobs, config=config, untouched=untouched)

    return judge_many(tasks, judge, config.workers)


def judge_many(tasks: Sequence[Task], judge: Callable[[Task], Evidence], workers: int) -> list[Judged]:
    """`judge` for every task in a pool of threads, its faults kept apart from its verdicts."""

    def judged(task: Task) -> Judged:
        try:
            return Judged(task=task.digest, evidence=judge(task))
        except FactoryError as error:
            return Judged(task=task.digest, evidence=None, fault=f"{type(error).__name__}: {error}")

    with ThreadPoolExecutor(workers, thread_name_prefix="judge") as pool:
        return list(pool.map(judged, tasks))


def solution(task: Task, blobs: BlobStore) -> tuple[Action, ...]:
    """The task's reference actions. Raises NotFound when they are not stored."""
    return Demonstration.from_manifest(get_json(blobs, task.solution)).actions


def run(task: Task, actions: Sequence[Action], backend: Backend, blobs: BlobStore, retries: int, grade: Grade = grade) -> Run:
    """Replay until it is not masked. Raises SandboxError when every attempt was."""
    masked: list[str] = []
    while True:
        started = time.perf_counter()
        outcome = replay(task, actions, backend, blobs, grade=grade)
        if outcome.kind is not OutcomeKind.MASKED:
            return Run(outcome, time.perf_counter() - started, tuple(masked))
        masked.append(f"{outcome.reason.value}: {outcome.fault}")
        if len(masked) > retries:
            raise SandboxError(f"not judged, {len(masked)} runs were masked, the last by {masked[-1]}")


def _passed(task: Task, outcome: Outcome) -> bool:
    held_out = task.held_out is None or (outcome.held_out is not None and outcome.held_out.passed)
    return outcome.solved and held_out


def _noop_fault(noop: Run) -> str:
    if noop.outcome.kind is OutcomeKind.INVALID_TASK:
        return f"the task is broken: {noop.outcome.fault}"
    return "doing nothing passes a verifier" if noop.passed_any else ""


def _gold_fault(task: Task, golds: Sequence[Run]) -> str:
    """What is wrong with the latest run, in one line."""
    outcome = golds[-1].outcome
    where = f"run {len(golds)} of the reference solution"
    if outcome.kind is OutcomeKind.INVALID_TASK:
        return f"the task is broken: {outcome.fault}"
    if outcome.reason is not Termination.SUBMITTED:
        return f"{where} ended by {outcome.reason.value}"
    if not _passed(task, outcome):
        failed = golds[-1].record()["not_passed"]
        return f"{where} does not pass: {'; '.join(failed[:3]) or 'no checks'}"
    if _names(outcome) != _names(golds[0].outcome):
        return f"{where} ran other checks than the first"
    return ""


def _names(outcome: Outcome) -> tuple[str, ...]:
    verdicts = [verdict for verdict in (outcome.verdict, outcome.held_out) if verdict is not None]
    return tuple(check.name for verdict in verdicts for check in verdict.checks)
