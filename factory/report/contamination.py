"""What tasks were compared with, what was found, and what of what was planted was found."""

from __future__ import annotations

from typing import Any

from factory.report.records import Records
from registry.store import Registry

SHOWN = 20
"""Most findings listed."""


def contamination(records: Records, registry: Registry) -> dict[str, Any]:
    """The screen's verdicts on tasks, the screens of each run, and the newest audit."""
    names = {row.digest: row.name for row in records.tasks}
    return {
        "screens": [{"run": run.id, **stage.data} for run, stage in records.of_stage("screen")],
        "contamination": _verdicts(registry, "contamination", names),
        "duplicates": _verdicts(registry, "duplicates", names),
        "audit": _newest_audit(records),
    }


def _verdicts(registry: Registry, filter: str, names: dict[str, str]) -> dict[str, Any]:
    """The filter's latest word on each task."""
    latest = dict(registry.evidence_of(filter=filter))
    failed = [(digest, found) for digest, found in latest.items() if not found.passed]
    return {
        "judged": len(latest),
        "failed": len(failed),
        "too_short_to_judge": sum(_too_short(found.data) for found in latest.values()),
        "rule": next(reversed(latest.values())).rule if latest else "",
        "shown": [{"task": digest, "name": names[digest], "reason": found.reason} for digest, found in failed[:SHOWN]],
    }


def _too_short(data: dict[str, Any]) -> bool:
    """Whether only exact forms could be compared: of the text, or of each of several texts."""
    texts = data.get("texts")
    return all(one["too_short_to_judge"] for one in texts.values()) if texts else bool(data["too_short_to_judge"])


def _newest_audit(records: Records) -> dict[str, Any] | None:
    audits = [stage for run, stage in records.of_stage("contamination") if run.flow == "audit"]
    if not audits:
        return None
    newest = max(audits, key=lambda stage: stage.updated_at)
    data = newest.data
    kinds = ("planted", "found", "too_short_to_judge", "recall", "interval")
    return {
        "at": newest.updated_at,
        "certified": data["certified"],
        "faults": data["faults"],
        "rule": data["rule"],
        "references": data["references"],
        "references_too_short": len(data["references_too_short_to_judge"]),
        "planted": {kind: {name: found[name] for name in kinds} for kind, found in data["planted"].items()},
        "negatives": data["negatives"],
        "screened": data["tasks"]["screened"],
        "matched": len(data["tasks"]["matched"]),
        "review": len(data["tasks"]["review"]),
        "too_short_to_judge": len(data["tasks"]["too_short_to_judge"]),
        "documents_per_second": data["tasks"]["documents_per_second"],
    }
