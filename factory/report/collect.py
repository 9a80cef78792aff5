"""Every figure of the report, as data: one call, from the registry's records alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from factory.core.assessment import TaskState, TaskStatus
from factory.report.contamination import contamination
from factory.report.costs import rollout_costs, stage_times, task_costs
from factory.report.funnel import funnel, pass_rates
from factory.report.learning import evaluations, training, verifier_gaps
from factory.report.records import Records
from factory.settings import Settings
from registry.store import Registry


def figures(registry: Registry, settings: Settings) -> dict[str, Any]:
    """JSON-able figures of the settings' policy line and split; the same registry gives the same figures.

    Rates are in [0, 1], times are seconds unless they are instants, intervals are 95 %.
    """
    records = Records.read(registry, settings)
    return {
        "line": records.line,
        "split": records.split,
        "as_of": _as_of(records),
        "totals": _totals(records),
        "funnel": funnel(records),
        "pass_rates": pass_rates(records),
        "training": training(records),
        "evaluations": evaluations(records),
        "verifier_gaps": verifier_gaps(records),
        "task_costs": task_costs(records),
        "rollout_costs": rollout_costs(records, registry),
        "runs": stage_times(records),
        "contamination": contamination(records, registry),
        "policies": _policies(records),
        "splits": [asdict(split) for split in records.splits],
    }


def _as_of(records: Records) -> str | None:
    """The newest instant that any run or task speaks of."""
    instants = [stage.updated_at for stages in records.stages.values() for stage in stages.values()]
    instants += [instant for run in records.runs for instant in (run.created_at, run.finished_at) if instant]
    return max([*instants, *(row.created_at for row in records.tasks)], default=None)


def _totals(records: Records) -> dict[str, Any]:
    accepted = [row for row in records.tasks if row.status is TaskStatus.ACCEPTED]
    holdout = [row for row in accepted if row.part and row.part != "train"]
    training_tasks = [row for row in accepted if row.part == "train"]
    return {
        "tasks": len(records.tasks),
        "accepted": len(accepted),
        "training_tasks": len(training_tasks),
        "frontier": sum(row.state is TaskState.FRONTIER for row in training_tasks),
        "holdout_tasks": len(holdout),
        "rollouts": len(records.trajectories),
        "sampled_tokens": sum(row.sampled for row in records.trajectories),
        "policies": sum(one.version.line == records.line for one in records.policies),
    }


def _policies(records: Records) -> list[dict[str, Any]]:
    """Versions in the order of their registration, each with the version that it was trained from."""
    names = {one.version.weights: one.version.name for one in records.policies}
    return [
        {
            "name": one.version.name,
            "line": one.version.line,
            "weights": one.version.weights,
            "step": one.version.step,
            "parent": names.get(one.parent or ""),
            "format": one.format,
            "created_at": one.created_at,
        }
        for one in records.policies
    ]
