"""The funnel: what was asked for, what came, why what was rejected, and what an accepted task costs in time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from factory.core.assessment import TaskState, TaskStatus
from factory.core.task import TaskKind
from factory.report.records import Records
from factory.report.yields import summary

JUDGE_AGAIN = "judge again"
"""The stage that judges what a fault left unjudged."""
EXAMPLES = 5
"""Most reasons shown of one filter."""
_REFUSED = (TaskStatus.REJECTED, TaskStatus.QUARANTINED, TaskStatus.WITHDRAWN)


def funnel(records: Records) -> dict[str, Any]:
    """Counts by kind and in all, reasons of what was refused, yield of edits, seconds per accepted task."""
    kinds = {kind.value: _kind(records, kind.value) for kind in TaskKind}
    kinds = {kind: counts for kind, counts in kinds.items() if counts["asked"] or counts["registered"]}
    accepted = sum(counts["accepted"] for counts in kinds.values())
    spent = sum(stage.seconds for run in records.runs if run.flow == "nightly" for stage in records.stages[run.id].values())
    return {
        "kinds": kinds,
        "refused": _refused(records),
        "not_judged": _not_judged(records),
        "projects": {name: state for _, stage in records.of_stage("fetch") for name, state in sorted(stage.data.items())},
        "yields": summary([stage for stages in records.stages.values() for stage in stages.values()]),
        "accepted": accepted,
        "stage_seconds_per_accepted": spent / accepted if accepted and spent else None,
    }


def _kind(records: Records, kind: str) -> dict[str, Any]:
    rows = [row for row in records.tasks if row.kind == kind]
    shards = [stage for _, of, stage in records.shards() if of == kind]
    statuses = Counter(row.status for row in rows)
    states = Counter(row.state for row in rows if row.status is TaskStatus.ACCEPTED)
    seconds = sum(stage.seconds for stage in shards)
    accepted = statuses[TaskStatus.ACCEPTED]
    return {
        "asked": sum(stage.data["asked"] for stage in shards),
        "generated": sum(stage.data["generated"] for stage in shards),
        "known_before": sum(stage.data["generated"] - stage.data["new"] for stage in shards),
        "registered": len(rows),
        **{status.value: statuses[status] for status in TaskStatus},
        "states": {state.value: states[state] for state in TaskState},
        "make_seconds": seconds,
        "make_seconds_per_accepted": seconds / accepted if accepted and seconds else None,
    }


def _refused(records: Records) -> list[dict[str, Any]]:
    """Refused tasks by kind, status and the filter that refused first, with its most frequent reasons."""
    groups: dict[tuple[str, str, str], Counter[str]] = {}
    for row in records.tasks:
        if row.status in _REFUSED:
            filter, _, reason = row.reason.partition(": ")
            judged = row.status is not TaskStatus.WITHDRAWN and reason
            key = (row.kind.value, row.status.value, filter if judged else "")
            groups.setdefault(key, Counter())[reason if judged else row.reason] += 1
    return [
        {
            "kind": kind,
            "status": status,
            "filter": filter,
            "tasks": reasons.total(),
            "reasons": [{"reason": reason, "tasks": count} for reason, count in reasons.most_common(EXAMPLES)],
        }
        for (kind, status, filter), reasons in sorted(groups.items())
    ]


def _not_judged(records: Records) -> list[dict[str, Any]]:
    """Candidates that no filter could judge because the infrastructure failed: by fault, as the last attempt met it."""
    again = {run.id: stage for run, stage in records.of_stage(JUDGE_AGAIN)}
    faults = Counter((one["kind"], one["fault"]) for stage in again.values() for one in stage.data["not_judged"])
    for run, kind, stage in records.shards():
        if run not in again:  # broken off before it, or candidates of `factory generate`
            faults.update((kind, fault) for fault in stage.data["not_judged"])
    return [{"kind": kind, "fault": fault, "tasks": count} for (kind, fault), count in faults.most_common(EXAMPLES)]


def pass_rates(records: Records) -> list[dict[str, Any]]:
    """Accepted tasks by kind, part and latest assessment for the line: the histogram's data."""
    counts = Counter(
        (row.kind.value, row.part or "in no part", row.k, row.n)
        for row in records.tasks
        if row.status is TaskStatus.ACCEPTED and row.n
    )
    names = ("kind", "part", "k", "n")
    return [{**dict(zip(names, key, strict=True)), "tasks": count} for key, count in sorted(counts.items())]
