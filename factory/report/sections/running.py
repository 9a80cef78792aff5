"""Sections on the machine's time: costs, stages, runs and what ended them."""

from __future__ import annotations

from typing import Any

from factory.report.html import duration, folded, instant, mark, paragraph, percent, plots, section, table
from factory.report.plots import BLUE, GREEN, GREY, ORANGE, PINK, SKY, stacked

_PHASES = {"decode": BLUE, "environment": GREEN, "verify": ORANGE, "reset": SKY, "observe": PINK}
MOST_RUNS = 50
"""Most runs listed, newest first."""


def costs(figures: dict[str, Any]) -> str:
    """Tokens and seconds of an accepted task and of a rollout."""
    tasks, rollouts = figures["task_costs"], figures["rollout_costs"]
    if not tasks and not rollouts:
        return section("costs", "Costs", paragraph("No task was accepted and nothing was rolled out yet."))
    of_tasks = [
        (one["kind"], one["accepted"], duration(one["make_seconds"]), one["assess_rollouts"], one["assess_sampled_tokens"])
        for one in tasks
    ]
    columns = ("kind", "accepted tasks", "making and checking", "rollouts", "sampled tokens")
    return section(
        "costs",
        "Costs",
        "<h3>Of one accepted task</h3>" + table(columns, of_tasks) if tasks else "",
        _rollouts(rollouts) if rollouts else "",
    )


def _rollouts(rollouts: list[dict[str, Any]]) -> str:
    rows = [
        (
            one["purpose"],
            one["rollouts"],
            percent(one["masked"] / one["rollouts"]),
            one["turns"],
            one["tokens"],
            one["sampled"],
            duration(one["stage_seconds"]),
            duration(one["seconds"]["queue"]),
        )
        for one in rollouts
    ]
    columns = ("to", "rollouts", "masked", "turns", "tokens", "sampled", "stage seconds each", "waiting")
    bars = {one["purpose"]: one["seconds"] for one in rollouts}
    measured = sum(one["seconds"]["measured"] for one in rollouts)
    note = f"Mean seconds of one rollout by phase, over {measured} of them. Rollouts overlap: the stage takes less for each."
    words = "Waiting is for other episodes of the same wave: they are sampled in lock-step."
    drawn = plots((stacked("Seconds of a rollout by phase", bars, _PHASES, "seconds"), note))
    return "<h3>Of one rollout</h3>" + drawn + table(columns, rows) + paragraph(words, soft=True)


def stages(figures: dict[str, Any]) -> str:
    """Where the newest night and the newest training spent their time."""
    newest = [
        run
        for flow in ("nightly", "train")
        for run in [next((one for one in figures["runs"] if one["flow"] == flow and one["stages"]), None)]
        if run is not None
    ]
    if not newest:
        return section("stages", "Stage times", paragraph("No night and no training was recorded yet."))
    drawn = [(_bars(run), f"{run['run']}: {duration(run['wall_seconds'])} from begin to end.") for run in newest]
    words = "Shards of one stage run side by side, so that their seconds can add up to more than the run took."
    phases = _phases(figures["training"])
    rows = [(run["run"], one["stage"], one["parts"], duration(one["seconds"])) for run in newest for one in run["stages"]]
    table_ = folded("All stages", table(("run", "stage", "parts", "seconds"), rows))
    return section("stages", "Stage times", paragraph(words), plots(*drawn, *phases), table_)


def _bars(run: dict[str, Any]) -> str:
    rows = {one["stage"]: {"seconds": one["seconds"]} for one in run["stages"]}
    return stacked(f"Seconds by stage of {run['flow']}", rows, {"seconds": BLUE}, "seconds")


def _phases(training: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Seconds of the newest training's steps by phase."""
    steps = training[-1]["steps"] if training else []
    names = list(dict.fromkeys(name for step in steps for name in step["seconds"]))
    if not names:
        return []
    rows = {name: {"seconds": sum(step["seconds"].get(name, 0.0) for step in steps)} for name in names}
    return [(stacked("Seconds by phase of a step", rows, {"seconds": GREY}, "seconds"), "Training steps, by phase.")]


def runs(figures: dict[str, Any]) -> str:
    """Every run, its state, and the budget or fault that ended it."""
    found = figures["runs"]
    if not found:
        return section("runs", "Runs", paragraph("Nothing ran yet."))
    rows = [
        (
            run["run"],
            _state(run["state"]),
            run["reason"],
            instant(run["begun"]),
            instant(run["ended"]),
            duration(run["wall_seconds"]),
        )
        for run in found[:MOST_RUNS]
    ]
    words = "Stopped runs ended at a budget with what they had; the same date again resumes them. Instants are UTC."
    return section("runs", "Runs", paragraph(words), table(("run", "state", "reason", "begun", "ended", "took"), rows))


def _state(state: str) -> Any:
    return mark(state == "finished", state) if state in ("finished", "failed") else state
