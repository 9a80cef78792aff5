"""Replaying a task's reference solution and the no-op on a back end."""

from __future__ import annotations

from typing import Any

from factory.agent.environment import replay
from factory.core.blobs import get_json
from factory.core.demonstration import Demonstration
from factory.core.outcome import Outcome
from factory.flows.workshop import Workshop
from factory.settings import Settings
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
