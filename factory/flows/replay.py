"""Replaying a task's reference solution and the no-op on a back end, as it is or in a matrix of machines."""

from __future__ import annotations

from typing import Any

from factory.agent.environment import replay
from factory.core.assessment import TaskStatus
from factory.core.blobs import get_json
from factory.core.demonstration import Demonstration
from factory.core.errors import UserError
from factory.core.outcome import Outcome
from factory.flows.night import Progress
from factory.flows.workshop import Workshop
from factory.settings import Settings, section
from filters.determinism import Cell, DeterminismConfig, check_determinism
from registry.store import Registry


def replay_task(settings: Settings, registry: Registry, reference: str, times: int) -> dict[str, Any]:
    """Gold `times` times and the no-op once; `agrees` when gold always passes both verifiers and the no-op neither.

    Raises NotFound, and SandboxError when the back end cannot work here.
    """
    task = registry.task(reference)
    actions = Demonstration.from_manifest(get_json(registry.blobs, task.solution)).actions
    with Workshop(settings, registry) as shop:
        golds = [replay(task, actions, shop.backend, registry.blobs) for _ in range(times)]
        noop = replay(task, (), shop.backend, registry.blobs)
        return {
            "digest": task.digest,
            "backend": shop.backend.name,
            "image": shop.backend.resolve(task.environment.image).digest,
            "gold": [_record(one) for one in golds],
            "noop": _record(noop),
            "agrees": all(_passes(one) for one in golds) and not noop.solved and noop.verdict is not None,
        }


def replay_matrix(settings: Settings, registry: Registry, reference: str, times: int, progress: Progress) -> dict[str, Any]:
    """Gold `times` times in a matrix of machines (`filters.determinism`); the evidence is stored with the task.

    A candidate or accepted task whose verdicts agree too seldom is quarantined. Raises UserError for less than 2 times or
    settings that are not right, NotFound, and SandboxError when the task could not be judged here.
    """
    config = section(DeterminismConfig, settings.determinism, "determinism")
    if not 0 <= config.floor <= 1:
        raise UserError("determinism.floor", config.floor, "a share from 0 to 1")
    if times < 2:
        raise UserError("--times", times, "at least 2 with --matrix: runs are compared with the first")
    task = registry.task(reference)
    progress.stage("replay", times)

    def tell(cell: Cell) -> None:
        progress.advance(f"load {cell.load}, {cell.timezone}, {cell.locale}")

    with Workshop(settings, registry) as shop:
        found = check_determinism(task, backend=shop.backend, blobs=registry.blobs, times=times, config=config, tell=tell)
        registry.add_evidence(task.digest, found)
        if not found.passed and registry.status(task.digest) in (TaskStatus.CANDIDATE, TaskStatus.ACCEPTED):
            registry.set_status(task.digest, TaskStatus.QUARANTINED, f"determinism: {found.reason}")
        status = registry.status(task.digest).value
    judged = {"agrees": found.passed, "rule": found.rule, "reason": found.reason, "status": status}
    return {"digest": task.digest, **judged, **found.data}


def _passes(outcome: Outcome) -> bool:
    return outcome.solved and (outcome.held_out is None or outcome.held_out.passed)


def _record(outcome: Outcome) -> dict[str, Any]:
    return {
        "outcome": outcome.kind.value,
        "reason": outcome.reason.value,
        "fault": outcome.fault,
        "solved": outcome.solved,
        "held_out_passed": outcome.held_out.passed if outcome.held_out else None,
        "progress": outcome.verdict.progress if outcome.verdict else None,
        "end": outcome.verdict.end if outcome.verdict else None,
        "seconds": round(outcome.verify_s, 4),
    }
