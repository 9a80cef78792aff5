"""The last lines say what came out, and where, and name commands that there are."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from factory.cli.main import app
from factory.report.closing import closing

TOTALS = {"accepted": 5, "tasks": 7, "training_tasks": 3, "frontier": 2, "holdout_tasks": 2, "policies": 1}


def rate(mean: float) -> dict[str, Any]:
    return {"all": {"rate": {"mean": mean, "low": mean - 0.125, "high": mean + 0.125}}}


def figures(**more: Any) -> dict[str, Any]:
    return {"totals": TOTALS, "evaluations": [], "training": [], **more}


def test_a_night_that_was_not_trained_on_yet() -> None:
    lines = closing(figures(), Path("data/my demo"), Path("out.html"))
    assert lines[0] == "5 of 7 tasks accepted: 3 to train on (2 on the frontier), 2 held out"
    assert lines[1] == "report: out.html"
    assert "next: factory train --data 'data/my demo'" in lines


def test_what_training_gained_is_told_with_its_intervals() -> None:
    evaluations = [
        {"run": "train/first", "parts": rate(0.25)},
        {"run": "train/first", "parts": rate(0.5)},
        {"run": "evaluate/now", "parts": rate(0.75)},
    ]
    lines = closing(figures(evaluations=evaluations, training=[{"run": "train/first"}]), Path("data"), Path("r.html"))
    gained = "0.250 (0.125 to 0.375) before, 0.500 (0.375 to 0.625) after (95 % intervals)"
    assert lines[1] == f"pass rate on the holdout, train/first: {gained}"
    assert not any("factory train" in line for line in lines)


def test_every_command_of_the_last_lines_is_taken_as_it_stands() -> None:
    for line in closing(figures(), Path("data/my demo"), Path("r.html")):
        if line.startswith("next: "):
            program, *rest = shlex.split(line.removeprefix("next: "))
            assert program == "factory"
            command: Any = typer.main.get_command(app)
            while hasattr(command, "commands"):
                command, rest = command.commands[rest[0]], rest[1:]
            assert command.make_context("factory", rest).params["data"] == Path("data/my demo")
