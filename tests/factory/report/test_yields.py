"""Yields, from stages that are written out here."""

from __future__ import annotations

from collections import Counter

from factory.report.yields import rows, summary
from registry.runs import StageRow


def stage(name: str, seconds: float = 0.0, **data: object) -> StageRow:
    return StageRow(stage=name, seconds=seconds, data=data, updated_at="2026-01-01T00:00:00")


STAGES = [
    stage("settings"),
    stage("triage p", 2.0, refused="", tests=40, suite_ms=90, for_good=True),
    stage("triage q", 1.0, refused="q==1 is refused: 2 stable tests of 2, fewer than 20", for_good=True),
    stage("make repository 0-24 of p", 8.0, fates=[["p", "off_by_one", "valid", 5], ["p", "off_by_one", "survived", 2]]),
    stage("make repository 25-29 of p", 4.0, fates=[["p", "off_by_one", "valid", 1], ["p", "raise_removed", "hang", 2]]),
    stage("make repository 0-5", 9.0, fates=[["q", "", "refused", 3], ["p", "", "no more sites", 4]]),
    stage("make terminal 0-5", 9.0),
]


def test_projects_say_what_triage_measured_and_what_became_of_their_edits() -> None:
    p, q = summary(STAGES)["projects"]
    assert (p["project"], p["tests"], p["edits"], p["valid"], p["yield"], p["seconds"]) == ("p", 40, 10, 6, 0.6, 14.0)
    assert p["fates"] == {"no more sites": 4, "survived": 2, "hang": 2}
    assert (q["project"], q["edits"], q["valid"], q["yield"], q["seconds"]) == ("q", 0, 0, None, 1.0)
    assert "2 stable tests" in q["refused"] and q["fates"] == {"refused": 3}


def test_operators_have_only_edits_that_were_tried() -> None:
    found = summary(STAGES)
    assert [(one["operator"], one["edits"], one["valid"], one["fates"]) for one in found["operators"]] == [
        ("off_by_one", 8, 6, {"survived": 2}),
        ("raise_removed", 2, 0, {"hang": 2}),
    ]
    assert (found["all"]["edits"], found["all"]["valid"], found["all"]["yield"]) == (10, 6, 0.6)


def test_nothing_was_tried() -> None:
    assert summary([]) == {"projects": [], "operators": [], "all": {"edits": 0, "valid": 0, "yield": None, "fates": {}}}


def test_rows_add_up_to_what_they_were_made_of() -> None:
    fates = Counter({("p", "a", "valid"): 2, ("p", "a", "hang"): 1})
    assert rows(fates) == [["p", "a", "hang", 1], ["p", "a", "valid", 2]]
    assert summary([stage("make repository 0-2", fates=rows(fates))])["all"]["fates"] == {"hang": 1}
