"""`factory tasks replay --matrix`: what is reported, stored and quarantined, and what `tasks why` then shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factory.core.action import Action
from factory.core.assessment import TaskStatus
from factory.core.blobs import get_json, put_json
from factory.core.demonstration import Demonstration
from factory.settings import Settings
from registry.store import Registry

from ..small import Small
from .command import Inside


def fragile(small: Small) -> str:
    """A further accepted task of the copy: its solution does its work only where the time zone is UTC."""
    with Registry.open(small.settings.database_url, small.data / "blobs") as registry:
        known = registry.candidate(small.digests[0])
        actions = Demonstration.from_manifest(get_json(registry.blobs, known.task.solution)).actions
        guarded = [
            Action("bash", {"command": f'if [ "$(date +%z)" = +0000 ]; then\n{one.arguments["command"]}\nfi'})
            if one.tool == "bash"
            else one
            for one in actions
        ]
        solution = put_json(registry.blobs, Demonstration(tuple(guarded)).manifest())
        made = replace(known, task=replace(known.task, solution=solution), name="terminal/fragile")
        digest = registry.register(made).digest
        validity = next(one for one in registry.evidence(small.digests[0]) if one.filter == "validity")
        registry.add_evidence(digest, validity)
        registry.set_status(digest, TaskStatus.ACCEPTED, "for the test")
    return digest


def told(factory: Inside, small: Small, *words: str, code: int = 0) -> Any:
    done = factory(*words, *small.options, "--json")
    assert done.code == code, done.err
    return json.loads(done.out)


def test_a_task_that_stays_the_same_keeps_its_status(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    record = told(factory, copy, "tasks", "replay", "chosen", "--times", "3", "--matrix")
    assert record["agrees"] is True and record["status"] == "accepted" and record["backend"] == "bubblewrap"
    # Wilson's interval for 2 of 2 by hand: 2 / (2 + 1.96 ** 2) = 0.3424
    assert record["verdicts"] == pytest.approx({"agree": 2, "of": 2, "share": 1, "low": 0.3424, "high": 1}, abs=1e-4)
    assert record["runs"][0]["load"] == 0 and len(record["runs"]) == 3
    why = told(factory, copy, "tasks", "why", "chosen")
    found = [one for one in why["evidence"] if one["filter"] == "determinism"]
    assert len(found) == 1 and found[0]["passed"] is True and found[0]["data"]["verdicts"]["of"] == 2


def test_a_fragile_task_is_quarantined_with_its_evidence(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    digest = fragile(copy)
    record = told(factory, copy, "tasks", "replay", digest, "--times", "4", "--matrix", code=1)
    assert record["agrees"] is False and record["status"] == "quarantined" and record["verdicts"]["agree"] == 1
    assert record["floor"] == 0.99
    why = told(factory, copy, "tasks", "why", digest)
    assert why["status"] == "quarantined" and why["reason"] == f"determinism: {record['reason']}"
    evidence = [one for one in why["evidence"] if one["filter"] == "determinism"]
    assert [one["passed"] for one in evidence] == [False] and evidence[0]["data"]["differ"] == record["differ"]
    assert [event["to"] for event in why["history"]] == ["candidate", "accepted", "quarantined"]
    readable = factory("tasks", "why", digest, *copy.options)
    assert readable.code == 0 and "timezone=<" in readable.out
    assert factory("tasks", "replay", digest, "--times", "2", "--matrix", *copy.options).code == 1
    assert told(factory, copy, "tasks", "why", digest)["status"] == "quarantined", "and stays there"


def test_the_floor_is_a_setting(factory: Inside, small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = small.copy(tmp_path / "data")
    digest = fragile(copy)
    monkeypatch.setenv("FACTORY_DETERMINISM", '{"floor": 0.3, "load": 0}')
    record = told(factory, copy, "tasks", "replay", digest, "--times", "4", "--matrix")
    assert record["agrees"] is True and record["status"] == "accepted" and record["floor"] == 0.3
    assert {run["load"] for run in record["runs"]} == {0}


@pytest.mark.parametrize(
    ("words", "value", "message"),
    [
        (("--times", "1"), "{}", "--times"),
        (("--times", "3"), '{"flor": 1}', "determinism.flor"),
        (("--times", "3"), '{"load": "much"}', "determinism.load"),
        (("--times", "3"), '{"floor": 99}', "determinism.floor"),
    ],
)
def test_mistakes_are_told_in_one_line(
    factory: Inside, small: Small, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], value: str, message: str
) -> None:
    monkeypatch.setenv("FACTORY_DETERMINISM", value)
    done = factory("tasks", "replay", "chosen", *words, "--matrix", *small.options)
    assert done.code == 2 and message in done.err and done.err.count("\n") == 1 and done.out == ""


def test_how_replays_are_compared_does_not_rename_a_run() -> None:
    assert Settings(determinism={"floor": 0.5}).digest == Settings().digest != Settings(screen={"x": 1}).digest
