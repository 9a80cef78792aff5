"""Sections on the policy: training curves, the holdout before and after, verifiers against held-out verifiers."""

from __future__ import annotations

from typing import Any

from factory.report.html import duration, folded, instant, interval, mark, paragraph, percent, plots, section, table, text
from factory.report.plots import curve, ranges

MOST_STEPS = 200
"""Most steps listed in a table; the curve has all of them."""
CURVE = (
    "Mean over the tasks drawn in a step, with its 95 % interval over those tasks. They are drawn from the frontier, where "
    "success is neither sure nor hopeless: whether the policy got better shows on the holdout."
)


def training(figures: dict[str, Any]) -> str:
    """The newest run's curves, and every run in a line."""
    runs = figures["training"]
    if not runs:
        return section("training", "Training", paragraph("Nothing was trained yet: `factory train` trains on the frontier."))
    columns = ("run", "state", "ended by", "from", "to", "steps", "seconds", "rollouts", "sampled tokens")
    rows = [
        (
            run["run"],
            run["state"],
            run["reason"],
            run["before"],
            run["after"],
            len(run["steps"]),
            duration(run["seconds"]),
            run["rollouts"],
            run["sampled_tokens"],
        )
        for run in runs
    ]
    newest = next((run for run in reversed(runs) if run["steps"]), None)
    return section("training", "Training", table(columns, rows), _curves(newest) if newest else "")


def _curves(run: dict[str, Any]) -> str:
    steps = run["steps"]
    solved = [
        (step["step"], step["interval"]["mean"], step["interval"]["low"], step["interval"]["high"])
        for step in steps
        if step["interval"]
    ]
    shares = [(step["step"], *(step["informative"] / step["drawn"],) * 3) for step in steps if step["drawn"]]
    drawn = []
    if solved:
        note = (
            "Mean over the tasks drawn in a step, with its 95 % interval over those tasks. They are drawn from the frontier, "
        )
        note += "where success is neither sure nor hopeless: whether the policy got better shows on the holdout."
        drawn.append((curve("Learning curve", solved, "step", "solved in training"), note))
    if shares:
        note = "Share of the drawn groups whose rollouts differ in reward, and so carry a gradient."
        drawn.append((curve("Informative groups", shares, "step", "informative groups"), note))
    return f"<h3>{text(run['run'])}</h3>" + plots(*drawn) + folded("Steps", _steps(steps))


def _steps(steps: list[dict[str, Any]]) -> str:
    columns = ("step", "solved", "reward", "groups", "masked", "entropy", "KL to sampler", "largest canary error")
    rows = [
        (
            step["step"],
            interval(step["interval"]),
            step["reward"],
            f"{step['informative']} of {step['drawn']}",
            step["masked"],
            step["entropy"],
            step["kl_behaviour"],
            step["canary_largest"],
        )
        for step in steps[-MOST_STEPS:]
    ]
    return table(columns, rows)


def holdout(figures: dict[str, Any]) -> str:
    """Pass rates before and after training, part by part, and every evaluation made."""
    trained = [run for run in figures["training"] if run["holdout"]]
    evaluations = figures["evaluations"]
    if not evaluations:
        words = "The sealed holdout was not evaluated yet: `factory train` does it before and after, `factory evaluate` alone."
        return section("holdout", "Holdout", paragraph(words))
    rows = [
        (
            one["policy"],
            one["run"],
            part,
            counts["tasks"],
            counts["rollouts"],
            counts["masked"],
            interval(counts["rate"]),
            interval(counts["verifier_gap"]),
        )
        for one in evaluations
        for part, counts in one["parts"].items()
    ]
    columns = ("policy", "run", "part", "tasks", "rollouts", "masked", "pass rate", "verifier gap")
    words = "Pass rates are means over tasks with 95 % intervals over tasks; new compositions and new families apart."
    every = folded("Every evaluation", table(columns, rows))
    return section("holdout", "Holdout", paragraph(words), *(_compared(run) for run in trained), every)


def _compared(run: dict[str, Any]) -> str:
    parts = sorted(run["holdout"].items(), key=lambda item: item[0] == "all")
    rows = [
        (part, one["tasks"], interval(one["before"]), interval(one["after"]), interval(one["paired_gain"]), _verdict(one))
        for part, one in parts
    ]
    columns = ("part", "tasks", "before", "after", "paired gain", "intervals")
    drawn = ranges(
        "Holdout before and after",
        [(part, {"before": one["before"], "after": one["after"]}) for part, one in parts],
        "pass rate",
    )
    caption = f"Before: {run['before']}. After: {run['after']}."
    return f"<h3>{text(run['run'])}</h3>" + plots((drawn, caption)) + table(columns, rows)


def _verdict(one: dict[str, Any]) -> Any:
    if one["intervals_overlap"]:
        return "overlap"
    return mark(one["after"]["mean"] > one["before"]["mean"], "apart")


def verifier_gap(figures: dict[str, Any]) -> str:
    """How often the verifier and the held-out verifier, which no policy is trained on, disagree."""
    gaps = figures["verifier_gaps"]
    if not gaps:
        return section("gap", "Verifier and held-out verifier", paragraph("No rollout was judged by both verifiers yet."))
    words = "The held-out verifier is never trained on. Passing only the verifier is the measure of reward hacking."
    rows = [
        (
            one["purpose"],
            one["judged"],
            percent(one["solved"] / one["judged"]),
            percent(one["held_out_solved"] / one["judged"]),
            one["only_verifier"],
            one["only_held_out"],
        )
        for one in gaps
    ]
    columns = ("rollouts to", "judged by both", "verifier passed", "held-out passed", "only verifier", "only held-out")
    measured = [
        (one["policy"], {"gap": one["parts"]["all"]["verifier_gap"]})
        for one in figures["evaluations"]
        if one["parts"]["all"]["verifier_gap"]
    ]
    steps = [step for run in figures["training"][-1:] for step in run["steps"] if step["verifier_gap"] is not None]
    drawn = []
    if measured:
        drawn.append((ranges("Verifier gap on the holdout", measured, "verifier minus held-out"), "On the holdout, by policy."))
    if steps:
        line = [(step["step"], *(step["verifier_gap"],) * 3) for step in steps]
        drawn.append((curve("Verifier gap in training", line, "step", "verifier minus held-out"), "In training."))
    return section("gap", "Verifier and held-out verifier", paragraph(words), plots(*drawn), table(columns, rows))


def policies(figures: dict[str, Any]) -> str:
    """Versions and what each was trained from."""
    found = figures["policies"]
    if not found:
        return section("policies", "Policy versions", paragraph("No policy version was registered yet."))
    rows = [(one["name"], one["step"], one["parent"], one["format"], instant(one["created_at"])) for one in found]
    return section("policies", "Policy versions", table(("version", "step", "trained from", "format", "registered"), rows))
