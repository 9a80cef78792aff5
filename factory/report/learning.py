"""What training did: steps with intervals, the holdout before and after, the gap to the held-out verifiers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from factory.core.outcome import OutcomeKind
from factory.core.statistics import bootstrap_mean
from factory.report.records import Records
from registry.rollouts import TrajectoryRow
from registry.runs import RunRow, StageRow

RESAMPLES = 400
"""Bootstrap resamples of one step's interval: a curve has hundreds of steps."""


def training(records: Records) -> list[dict[str, Any]]:
    """Every training run: its steps, and its summary where it ended."""
    runs = [run for run in records.runs if run.flow == "train"]
    by_run: dict[str | None, list[TrajectoryRow]] = defaultdict(list)
    for row in records.trajectories:
        if row.purpose == "train":
            by_run[row.run].append(row)
    return [_run(records, run, by_run[run.id]) for run in runs]


def _run(records: Records, run: RunRow, rows: list[TrajectoryRow]) -> dict[str, Any]:
    groups: dict[int, dict[str, list[TrajectoryRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.outcome is OutcomeKind.SCORED:
            groups[int(row.group.split("/")[0])][row.group].append(row)
    steps = [_step(stage, list(groups[stage.data["step"]].values())) for stage in records.steps(run.id)]
    summary = records.stages[run.id].get("summary")
    ended = summary.data if summary else None
    return {
        "run": run.id,
        "state": run.state.value,
        "reason": ended["training"]["reason"] if ended else run.reason,
        "before": ended["holdout"]["before"] if ended else None,
        "after": ended["holdout"]["after"] if ended else None,
        "seconds": steps[-1]["elapsed_s"] if steps else 0.0,
        "rollouts": sum(step["rollouts"] for step in steps),
        "sampled_tokens": sum(step["sampled_tokens"] for step in steps),
        "steps": steps,
        "holdout": ended["holdout"]["parts"] if ended else {},
    }


def _step(stage: StageRow, groups: list[list[TrajectoryRow]]) -> dict[str, Any]:
    """One step; the interval is over its tasks, since rollouts of one task are not independent."""
    data = stage.data
    rates = [sum(row.solved for row in group) / len(group) for group in groups]
    judged = [row for group in groups for row in group if row.held_out_solved is not None]
    gap = sum(row.solved - bool(row.held_out_solved) for row in judged) / len(judged) if judged else None
    return {
        "step": data["step"],
        "elapsed_s": data["elapsed_s"],
        "solved": data["solved"],
        "interval": asdict(bootstrap_mean(rates, resamples=RESAMPLES)) if rates else None,
        "tasks": len(groups),
        "reward": data["reward"],
        "rollouts": data["rollouts"],
        "masked": data["masked"],
        "informative": data["groups"]["informative"],
        "drawn": data["groups"]["drawn"],
        "sampled_tokens": data["sampled_tokens"],
        "entropy": data["update"].get("entropy"),
        "kl_behaviour": data["update"].get("kl_behaviour"),
        "canary_largest": data["canary"]["largest"],
        "verifier_gap": gap,
        "seconds": data["seconds"],
    }


def evaluations(records: Records) -> list[dict[str, Any]]:
    """Every evaluation on the holdout, oldest first: rates and gaps by part."""
    return [
        {"run": run.id, "at": stage.updated_at, "policy": stage.data["policy"], "parts": stage.data["parts"]}
        for run in records.runs
        for stage in records.evaluations(run.id)
    ]


def verifier_gaps(records: Records) -> list[dict[str, Any]]:
    """By purpose: scored rollouts that both verifiers judged, and how often they differed."""
    judged: dict[str, list[TrajectoryRow]] = defaultdict(list)
    for row in records.trajectories:
        if row.outcome is OutcomeKind.SCORED and row.held_out_solved is not None:
            judged[row.purpose].append(row)
    return [
        {
            "purpose": purpose,
            "judged": len(rows),
            "solved": sum(row.solved for row in rows),
            "held_out_solved": sum(bool(row.held_out_solved) for row in rows),
            "only_verifier": sum(row.solved and not row.held_out_solved for row in rows),
            "only_held_out": sum(bool(row.held_out_solved) and not row.solved for row in rows),
        }
        for purpose, rows in sorted(judged.items())
    ]
