"""The last lines of a report in the terminal: what came out, where it is, what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def closing(figures: Mapping[str, Any], data: Path, page: Path) -> list[str]:
    """Lines for people, from the figures of `factory.report.collect.figures`; `data` is the data folder, `page` the report."""
    totals = figures["totals"]
    lines = [
        f"{totals['accepted']} of {totals['tasks']} tasks accepted: {totals['training_tasks']} to train on "
        f"({totals['frontier']} on the frontier), {totals['holdout_tasks']} held out",
        *_learnt(figures["evaluations"]),
        f"report: {page}",
    ]
    option = f"--data {shlex.quote(str(data))}"
    lines.append(f"next: factory tasks list {option} --status accepted --limit 20")
    if totals["policies"] and totals["frontier"] and not figures["training"]:
        lines.append(f"next: factory train {option}")
    lines.append(f"next: factory trajectories list {option} --solved --limit 20")
    return lines


def _learnt(evaluations: list[dict[str, Any]]) -> list[str]:
    """The holdout before and after the newest training run that measured both."""
    for run in dict.fromkeys(one["run"] for one in reversed(evaluations)):
        rates = [one["parts"]["all"]["rate"] for one in evaluations if one["run"] == run]
        if run.startswith("train/") and len(rates) > 1 and all(rates):
            first, last = (f"{rate['mean']:.3f} ({rate['low']:.3f} to {rate['high']:.3f})" for rate in (rates[0], rates[-1]))
            return [f"pass rate on the holdout, {run}: {first} before, {last} after (95 % intervals)"]
    return []
