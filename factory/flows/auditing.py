"""The contamination audit over the registry."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from factory.core.assessment import TaskStatus
from factory.flows.screening import contamination_config, references
from factory.settings import Settings
from filters.contamination.audit import audit
from filters.contamination.survey import Item
from registry.store import Registry


def audit_contamination(settings: Settings, registry: Registry) -> dict[str, Any]:
    """Screen all that every task that is not rejected says and ships; recorded as a run of its own."""
    against = references(settings.screen)
    result = audit(_tasks(registry), registry.blobs, against, screen=contamination_config(settings.screen))
    # The screen is all that the run depends on: an audit under other settings of policy or training is the same audit.
    run = registry.begin_run("audit", f"{result['screen'][:12]}/{sum(registry.counts().values())}", result["screen"])
    registry.record_stage(run.id, "contamination", result)
    registry.finish_run(run.id)
    return {"run": run.id, **result}


def _tasks(registry: Registry) -> Iterator[Item]:
    for row in registry.query():
        if row.status is not TaskStatus.REJECTED:
            yield row.digest, partial(registry.candidate, row.digest)
