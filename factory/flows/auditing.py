"""The contamination audit over the registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from factory.core.assessment import TaskStatus
from factory.core.digest import Digest
from factory.flows.screening import contamination_config, references
from factory.settings import Settings
from filters.contamination.audit import audit
from registry.store import Registry


def audit_contamination(settings: Settings, registry: Registry) -> dict[str, Any]:
    """Screen the text and the instruction of every task that is not rejected; recorded as a run of its own."""
    result = audit(_texts(registry), references(settings.screen), screen=contamination_config(settings.screen))
    run = registry.begin_run("audit", f"{result['screen'][:12]}/{sum(registry.counts().values())}", settings.digest)
    registry.record_stage(run.id, "contamination", result)
    registry.finish_run(run.id)
    return {"run": run.id, **result}


def _texts(registry: Registry) -> Iterator[tuple[Digest, str]]:
    for row in registry.query():
        if row.status is not TaskStatus.REJECTED:
            candidate = registry.candidate(row.digest)
            yield row.digest, f"{candidate.task.instruction}\n\n{candidate.text}"
