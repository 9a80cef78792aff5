"""The yield of repository tasks: what became of every edit that was tried, by project and by operator."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any

from factory.report.records import TRIAGE
from registry.runs import StageRow

Fate = tuple[str, str, str]
"""(project, operator, what became of it); the operator is empty where no edit was looked at."""
VALID = "valid"
"""The fate of an edit that became a task which every filter so far passed."""
NOT_JUDGED = "not judged"
"""The fate of a task that the infrastructure kept from being judged."""
NO_EDIT = ("refused", "no more sites", "not one line")
"""Fates of numbers for which no edit was tried."""
_PART = re.compile(r"make \S+ \d+-\d+ of (?P<project>\S+)")


def rows(fates: Counter[Fate]) -> list[list[Any]]:
    """Fates as JSON, sorted."""
    return [[*fate, count] for fate, count in sorted(fates.items())]


def summary(stages: Collection[StageRow]) -> dict[str, Any]:
    """{projects, operators, all} of some runs' stages: rows with edits tried, valid tasks, their share, and the other fates.

    A project of a fleet also has what triage says (`refused`, else `tests` and `suite_ms`) and its `seconds` in all.
    """
    fates: Counter[Fate] = Counter()
    for stage in stages:
        for project, operator, fate, count in stage.data.get("fates", ()):
            fates[project, operator, fate] += count
    triaged = {stage.stage.removeprefix(TRIAGE): stage.data for stage in stages if stage.stage.startswith(TRIAGE)}
    seconds = _seconds(stages)
    names = sorted(triaged.keys() | {project for project, _, _ in fates})
    operators = sorted({operator for _, operator, fate in fates if operator and fate not in NO_EDIT})
    return {
        "projects": [
            {"project": name, **triaged.get(name, {}), **_row(fates, 0, name), "seconds": seconds.get(name)} for name in names
        ],
        "operators": [{"operator": name, **_row(fates, 1, name)} for name in operators],
        "all": _row(fates),
    }


def _seconds(stages: Collection[StageRow]) -> dict[str, float]:
    """Wall seconds of triage and of all parts, by project of a fleet."""
    found: dict[str, float] = defaultdict(float)
    for stage in stages:
        part = _PART.fullmatch(stage.stage)
        if part or stage.stage.startswith(TRIAGE):
            found[part["project"] if part else stage.stage.removeprefix(TRIAGE)] += stage.seconds
    return dict(found)


def _row(fates: Counter[Fate], place: int = 0, name: str | None = None) -> dict[str, Any]:
    """Edits tried, valid tasks, their share, and counts of the other fates, the most frequent first."""
    found: Counter[str] = Counter()
    for fate, count in fates.items():
        if name is None or fate[place] == name:
            found[fate[2]] += count
    edits = sum(count for fate, count in found.items() if fate not in NO_EDIT)
    valid = found[VALID]
    others = {fate: count for fate, count in found.most_common() if fate != VALID}
    return {"edits": edits, "valid": valid, "yield": valid / edits if edits else None, "fates": others}
