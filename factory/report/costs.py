"""What tasks and rollouts cost: tokens, seconds, and where a rollout's seconds go."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from factory.core.assessment import TaskStatus
from factory.core.outcome import OutcomeKind
from factory.report.records import SETTINGS, Records, group_of, seconds_between
from registry.rollouts import TrajectoryRow
from registry.runs import RunRow, RunState
from registry.store import Registry

MEASURED = 2000
"""Most rollouts, newest first, whose bodies are read to see where their seconds go."""
_EPISODE = {"reset_s": "reset", "queue_s": "queue", "verify_s": "verify"}
_TURN = {"decode_s": "decode", "environment_s": "environment", "observe_s": "observe"}
_STAGES = {"assess": "assess", "train": "train", "evaluate": "evaluate"}
"""The stage whose seconds rollouts of a purpose took."""


def rollout_costs(records: Records, registry: Registry) -> list[dict[str, Any]]:
    """By purpose: rollouts, how they ended, tokens and seconds of one on average."""
    rows: dict[str, list[TrajectoryRow]] = defaultdict(list)
    for row in records.trajectories:
        rows[row.purpose].append(row)
    seconds = _stage_seconds(records)
    return [
        {
            "purpose": purpose,
            "rollouts": len(some),
            "masked": sum(row.outcome is OutcomeKind.MASKED for row in some),
            "solved": sum(row.solved for row in some),
            "tokens": _mean([row.tokens for row in some]),
            "sampled": _mean([row.sampled for row in some]),
            "turns": _mean([row.turns for row in some]),
            "stage_seconds": seconds.get(_STAGES.get(purpose, ""), 0.0) / len(some) or None,
            "seconds": _seconds(registry, some[:MEASURED]),
        }
        for purpose, some in sorted(rows.items())
    ]


def _seconds(registry: Registry, rows: list[TrajectoryRow]) -> dict[str, Any]:
    """Mean seconds of a rollout in each phase, over whole stored batches of about `MEASURED` rollouts."""
    import pyarrow.compute as pc

    from registry.trajectories import from_parquet

    sums: dict[str, float] = defaultdict(float)
    measured = 0
    for blob in dict.fromkeys(row.blob for row in rows):
        table = from_parquet(registry.blobs.get(blob))
        measured += table.num_rows
        for column, phase in _EPISODE.items():
            sums[phase] += pc.sum(table[column]).as_py() or 0.0
        turns = table["turns"].combine_chunks().flatten()
        for column, phase in _TURN.items():
            sums[phase] += pc.sum(turns.field(column)).as_py() or 0.0
    return {"measured": measured, **{phase: total / measured for phase, total in sums.items()}}


def task_costs(records: Records) -> list[dict[str, Any]]:
    """By kind, for one accepted task: seconds of making and checking candidates, and what its assessments sampled."""
    kind_of = {row.digest: row.kind.value for row in records.tasks if row.status is TaskStatus.ACCEPTED}
    making: dict[str, float] = defaultdict(float)
    for _, kind, stage in records.shards():
        making[kind] += stage.seconds
    sampled: dict[str, int] = defaultdict(int)
    rollouts: dict[str, int] = defaultdict(int)
    for row in records.trajectories:
        if row.purpose == "assess" and row.task in kind_of:
            sampled[kind_of[row.task]] += row.sampled
            rollouts[kind_of[row.task]] += 1
    counts = {kind: list(kind_of.values()).count(kind) for kind in sorted(set(kind_of.values()))}
    return [
        {
            "kind": kind,
            "accepted": count,
            "make_seconds": making[kind] / count,
            "assess_rollouts": rollouts[kind] / count,
            "assess_sampled_tokens": sampled[kind] / count,
        }
        for kind, count in counts.items()
    ]


def stage_times(records: Records) -> list[dict[str, Any]]:
    """Every run, newest first: state, wall seconds, and the seconds of its stages, shards of one sort added up."""
    return [_run(records, run) for run in reversed(records.runs)]


def _run(records: Records, run: RunRow) -> dict[str, Any]:
    groups: dict[str, dict[str, Any]] = {}
    for name, stage in records.stages[run.id].items():
        if name == SETTINGS or (run.flow == "train" and name == "summary"):
            continue  # the one is no work, the other's seconds are those of the steps
        group = groups.setdefault(group_of(name), {"stage": group_of(name), "parts": 0, "seconds": 0.0})
        group["parts"] += 1
        group["seconds"] += stage.seconds
    ended = run.finished_at if run.state is not RunState.RUNNING else None
    return {
        "run": run.id,
        "flow": run.flow,
        "state": run.state.value,
        "reason": run.reason,
        "begun": run.created_at,
        "ended": ended,
        "wall_seconds": seconds_between(run.created_at, ended) if ended else None,
        "stages": list(groups.values()),
    }


def _stage_seconds(records: Records) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for stages in records.stages.values():
        for name, stage in stages.items():
            sums[group_of(name)] += stage.seconds
    return sums


def _mean(values: list[int]) -> float:
    return sum(values) / len(values)
