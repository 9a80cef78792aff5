"""Sections on tasks: the funnel, pass rates, contamination."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

from factory.report.html import (
    NOTHING,
    duration,
    folded,
    instant,
    interval,
    mark,
    paragraph,
    percent,
    plots,
    section,
    table,
)
from factory.report.plots import BLUE, GREEN, GREY, ORANGE, RED, SKY, histogram, ranges, stacked

_FATES = {"accepted": GREEN, "candidate": SKY, "rejected": RED, "quarantined": ORANGE, "withdrawn": GREY}
_STATES = {"frontier": BLUE, "mastered": GREEN, "too hard": RED, "unassessed": GREY}
_ALWAYS = ("asked", "generated", "accepted", "rejected")
_COUNTS = ("asked", "generated", "known_before", "registered", *_FATES)
_SCREENS = ("contamination", "duplicates")
MOST_BINS = 16
"""Assessments of more rollouts than this are drawn in ten bins."""


def funnel(figures: dict[str, Any]) -> str:
    """Candidates to accepted tasks, by kind, with the reasons of what was refused."""
    found = figures["funnel"]
    kinds = found["kinds"]
    if not kinds:
        return section("funnel", "Funnel", paragraph("No candidate was made yet: `factory nightly` makes some."))
    shown = [name for name in _COUNTS if name in _ALWAYS or any(one[name] for one in kinds.values())]
    columns = ("kind", *(name.replace("_", " ") for name in shown), "seconds per accepted")
    rows = [(kind, *(one[name] for name in shown), duration(one["make_seconds_per_accepted"])) for kind, one in kinds.items()]
    drawn = plots(
        (stacked("Tasks by kind and status", kinds, _FATES, "tasks"), "What became of the registered tasks."),
        (
            stacked("Accepted tasks by state", {kind: one["states"] for kind, one in kinds.items()}, _STATES, "accepted tasks"),
            f"Where the accepted tasks stand for policy line {figures['line']}.",
        ),
    )
    spent = found["stage_seconds_per_accepted"]
    words = f"All stages of the nightly runs together took {duration(spent)} per accepted task." if spent else ""
    note = "Seconds per accepted task are those of the shards that made and checked its kind; shards run side by side."
    return section(
        "funnel",
        "Funnel",
        paragraph(f"{words} {note}"),
        drawn,
        table(columns, rows),
        _missing(kinds),
        _refused(found["refused"]),
        _faults(found["not_judged"]),
        _projects(found["projects"]),
        _yields(found["yields"]),
    )


def _missing(kinds: dict[str, Any]) -> str:
    missing = {kind: one["asked"] - one["generated"] for kind, one in kinds.items() if one["asked"] > one["generated"]}
    if not missing:
        return ""
    listed = ", ".join(f"{count} of {kind}" for kind, count in missing.items())
    return paragraph(f"Asked for and not generated, since the generator's own checks left no candidate: {listed}.")


def _refused(refused: list[dict[str, Any]]) -> str:
    if not refused:
        return paragraph("No filter refused a task.")
    rows = [
        (one["kind"], one["status"], one["filter"], one["tasks"], reason["tasks"], reason["reason"])
        for one in refused
        for reason in one["reasons"]
    ]
    head = "<h3>Why tasks were refused</h3>"
    return head + table(("kind", "status", "filter", "tasks in all", "with this reason", "reason"), rows)


def _faults(faults: list[dict[str, Any]]) -> str:
    if not faults:
        return ""
    rows = [(one["kind"], one["tasks"], one["fault"]) for one in faults]
    return "<h3>Not judged: the infrastructure failed</h3>" + table(("kind", "checks", "fault"), rows)


def _projects(projects: dict[str, str]) -> str:
    return folded(f"{len(projects)} projects fetched", table(("project", "state"), projects.items())) if projects else ""


def _yields(found: dict[str, Any]) -> str:
    """What became of edits, by project and by operator."""
    if not found["projects"]:
        return ""
    total = found["all"]
    words = (
        f"Of {total['edits']} edits of real projects, equivalent and repeated ones not counted, {total['valid']} "
        f"({percent(total['yield'])}) became tasks that every filter passed when they were made."
    )
    fates = list(total["fates"])
    columns = ("edits", "valid", "yield", *fates)
    return "".join(
        (
            "<h3>Yield of edits</h3>",
            paragraph(words),
            table(("operator", *columns), [(one["operator"], *_yield(one, fates)) for one in found["operators"]]),
            folded(
                "Yield by project",
                table(
                    ("project", "tests", *columns, "time", "refused, since"),
                    [
                        (
                            one["project"],
                            one.get("tests", NOTHING),
                            *_yield(one, fates),
                            duration(one["seconds"]),
                            one.get("refused", ""),
                        )
                        for one in found["projects"]
                    ],
                ),
            ),
        )
    )


def _yield(one: dict[str, Any], fates: list[str]) -> tuple[Any, ...]:
    return one["edits"], one["valid"], percent(one["yield"]), *(one["fates"].get(fate, 0) for fate in fates)


def pass_rates(figures: dict[str, Any]) -> str:
    """Histogram of k of n of the latest assessments."""
    rates = figures["pass_rates"]
    if not rates:
        return section("rates", "Pass rates", paragraph(f"No accepted task was assessed for line {figures['line']} yet."))
    sizes = {one["n"] for one in rates}
    bins = max(sizes) if len(sizes) == 1 and max(sizes) <= MOST_BINS else 10
    parts: dict[str, Counter[float]] = defaultdict(Counter)
    for one in rates:
        parts[one["part"]][_bin(one["k"], one["n"], bins) / bins] += one["tasks"]
    tasks = sum(one["tasks"] for one in rates)
    between = sum(one["tasks"] for one in rates if 0 < one["k"] < one["n"])
    words = f"{between} of {tasks} assessed tasks have 0 < k < n: only they carry a signal for GRPO."
    label = "Accepted tasks by pass rate of their latest assessment"
    note = "Tasks that the policy always or never solves leave its curriculum and come back when the rate moves."
    drawn = plots((histogram(label, dict(sorted(parts.items(), reverse=True)), bins), note))
    return section("rates", "Pass rates", paragraph(words), drawn)


def _bin(k: int, n: int, bins: int) -> int:
    """The nearest bin; only 0 of n and n of n fall into the outermost."""
    if k in (0, n):
        return 0 if k == 0 else bins
    return min(max(math.floor(k * bins / n + 0.5), 1), bins - 1)


def contamination(figures: dict[str, Any]) -> str:
    """What was compared with what, what was found, and what the audit's plants say about it."""
    found = figures["contamination"]
    if not found["contamination"]["judged"] and found["audit"] is None:
        return section("contamination", "Contamination", paragraph("No task was screened yet."))
    references = sorted({name for one in found["screens"] for name in one["references"]})
    rows = [(name, found[name]["judged"], found[name]["failed"], found[name]["too_short_to_judge"]) for name in _SCREENS]
    shown = [
        (filter, one["name"], one["reason"]) for filter in ("contamination", "duplicates") for one in found[filter]["shown"]
    ]
    return section(
        "contamination",
        "Contamination",
        paragraph(f"Compared with {', '.join(references) or 'no reference set'}, and each task with all earlier ones."),
        table(("screen", "tasks", "matches", "by exact form only"), rows),
        paragraph(
            f"Of {figures['totals']['tasks']} tasks, those too short for shingles were compared by exact forms only.", True
        ),
        table(("screen", "task", "match"), shown) if shown else "",
        folded(
            "The rules",
            *(paragraph(f"{name}: {found[name]['rule']}", soft=True) for name in _SCREENS),
        ),
        _audit(found["audit"]),
    )


def _audit(audit: dict[str, Any] | None) -> str:
    head = "<h3>Audit</h3>"
    if audit is None:
        return head + paragraph("No audit ran: `factory audit contamination` plants matches and says how many are found.")
    verdict = mark(audit["certified"], "certified" if audit["certified"] else "not certified")
    counts = f"{audit['screened']} tasks screened, {audit['matched']} match, {audit['review']} for review"
    missing = f", {audit['not_screened']} could not be screened" if audit["not_screened"] else ""
    alarms = [(kind, one["planted"], one["matched"], percent(one["rate"])) for kind, one in audit["negatives"].items()]
    recalls = [(kind, {"recall": one["interval"]}) for kind, one in audit["planted"].items() if one["interval"]]
    drawn = (ranges("Recall of planted matches by kind", recalls, "recall"), "Of the plants that are long enough to judge.")
    return "".join(
        (
            head,
            table(("verdict", "at", "tasks"), [(verdict, instant(audit["at"]), counts + missing)]),
            *(paragraph(fault) for fault in audit["faults"]),
            _shipped(audit),
            plots(drawn) if recalls else "",
            table(("planted match", *_FOUND), [(kind, *_found(one)) for kind, one in audit["planted"].items()]),
            _places(audit["places"]),
            table(("planted non-match", "planted", "matched", "rate"), alarms),
        )
    )


_FOUND = ("planted", "found", "too short to judge", "recall")


def _found(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["planted"], one["found"], one["too_short_to_judge"], interval(_recall(one))


def _shipped(audit: dict[str, Any]) -> str:
    """What of the tasks was read, and how much of them could be judged."""
    if not audit["files"]:
        return ""
    words = (
        f"{percent(audit['judged_share'])} of the tasks are long enough to be compared by more than exact forms, files "
        f"included; {audit['too_short_to_judge']} are not. Without their files {audit['too_short_without_files']} would not be."
    )
    read = [(tree, number) for tree, number in audit["files"].items()]
    unread = [(one["in"], one["why"], one["files"]) for one in audit["unread_files"]]
    return "".join(
        (
            paragraph(words),
            table(("files of tasks", "read"), read),
            table(("files of tasks", "not read, since", "files"), unread) if unread else "",
        )
    )


def _places(places: dict[str, Any]) -> str:
    """Recall inside files: by place, and by kind in each."""
    if not places:
        return ""
    kinds = list(dict.fromkeys(kind for found in places.values() for kind in found["by_kind"]))
    rows = [(kind, *(interval(_recall(found["by_kind"][kind])) for found in places.values())) for kind in kinds]
    return "".join(
        (
            table(("planted in files", *_FOUND), [(place, *_found(found)) for place, found in places.items()]),
            folded("Recall in files, by kind", table(("planted match", *places), rows)),
        )
    )


def _recall(one: dict[str, Any]) -> dict[str, float] | None:
    return one["interval"] and {**one["interval"], "mean": one["recall"]}
