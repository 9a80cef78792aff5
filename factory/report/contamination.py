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
    """Whether only exact forms could be compared; older evidence says so of each text."""
    texts = data.get("texts")
    return all(one["too_short_to_judge"] for one in texts.values()) if texts else bool(data["too_short_to_judge"])


def _newest_audit(records: Records) -> dict[str, Any] | None:
    audits = [stage for run, stage in records.of_stage("contamination") if run.flow == "audit"]
    if not audits:
        return None
    newest = max(audits, key=lambda stage: stage.updated_at)
    return {"at": newest.updated_at, **summary(newest.data)}


_RECALL = ("planted", "found", "too_short_to_judge", "recall", "interval")
_COUNTS = ("matched", "review", "not_screened", "too_short_to_judge", "too_short_without_files")


def summary(data: dict[str, Any]) -> dict[str, Any]:
    """An audit's record without its lists. Records from before files were screened have no figures of files."""
    tasks = data["tasks"]
    counts = tasks.get("counts") or {name: len(tasks[name]) for name in _COUNTS if name in tasks}
    places = data.get("planted_in_files", {})
    return {
        "certified": data["certified"],
        "faults": data["faults"],
        "rule": data["rule"],
        "references": data["references"],
        "references_too_short": len(data["references_too_short_to_judge"]),
        "planted": {kind: _only_recall(found) for kind, found in data["planted"].items()},
        "places": {
            place: {
                **_only_recall(found),
                "by_kind": {kind: _only_recall(one) for kind, one in found["by_kind"].items()},
                "by_length": {length: _only_recall(one) for length, one in found["by_length"].items()},
            }
            for place, found in places.items()
        },
        "negatives": data["negatives"],
        "screened": tasks["screened"],
        **{name: counts.get(name, 0) for name in _COUNTS},
        "judged_share": tasks.get("judged_share"),
        "files": tasks.get("files", {}),
        "different_files": tasks.get("different_files", {}),
        "unread_files": tasks.get("unread_files", []),
        "documents_per_second": tasks["documents_per_second"],
    }


def _only_recall(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in _RECALL}


def certificate(record: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """An audit's record as titled tables of plain rows, what decides first."""
    told = summary(record)
    verdict = {"certified": "yes" if told["certified"] else "no"}
    counts = {name.replace("_", " "): told[name] for name in ("screened", *_COUNTS)}
    kinds = list(dict.fromkeys(kind for found in told["places"].values() for kind in found["by_kind"]))
    tables = {
        "verdict": [{**verdict, "run": record["run"], "references": " ".join(one["name"] for one in told["references"])}],
        "why not": [{"fault": fault} for fault in told["faults"]],
        "tasks": [counts | {"judged": _share(told["judged_share"])}],
        "matches": [
            {name: one[name] for name in ("task", "in", "problem", "part", "view")} for one in record["tasks"]["matched"]
        ],
        "not screened": record["tasks"]["not_screened"],
        "files read": [{"in": tree, "files": number} for tree, number in told["files"].items()],
        "files not read": told["unread_files"],
        "planted texts": [{"kind": kind, **_row(found)} for kind, found in told["planted"].items()],
        "planted in files": [{"place": place, **_row(found)} for place, found in told["places"].items()],
        "planted in files, found of long enough": [
            {"kind": kind} | {place: _of(found["by_kind"][kind]) for place, found in told["places"].items()} for kind in kinds
        ],
        "planted in files, by length": [
            {"place": place} | {length: _of(one) for length, one in found["by_length"].items()}
            for place, found in told["places"].items()
        ],
        "negatives": [
            {"kind": kind, "planted": one["planted"], "matched": one["matched"]} for kind, one in told["negatives"].items()
        ],
    }
    return {title: rows for title, rows in tables.items() if rows}


def _row(found: dict[str, Any]) -> dict[str, Any]:
    names = {name: found[name] for name in ("planted", "found")}
    return names | {"too short": found["too_short_to_judge"], "recall": found["recall"]}


def _of(found: dict[str, Any]) -> str:
    return f"{found['found']}/{found['planted'] - found['too_short_to_judge']}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
