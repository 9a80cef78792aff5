"""The whole way once on real parts, through the commands: a night, training, a report; stops at budgets, failures.

Real Prefect, vLLM, torch, bubblewrap and SQLite; about two minutes.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from factory.report.collect import figures
from factory.report.page import page
from factory.settings import load_settings
from registry.store import Registry

from ..cli.command import Done, process
from .test_kills import CONFIG

pytestmark = [pytest.mark.slow, pytest.mark.vllm]
SMALLER = CONFIG.replace("terminal = 30\ndatabase = 10\nrepository = 4", "terminal = 16\ndatabase = 4\nrepository = 0")
SMALLER = SMALLER.replace("steps = 6", "steps = 2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole")
    (path / "factory.toml").write_text(SMALLER)
    return path


def run(folder: Path, *arguments: str, **variables: str) -> Done:
    return process(*arguments, "--data", "data", cwd=folder, timeout=600, **variables)


def select(folder: Path, statement: str) -> list[Any]:
    connection = sqlite3.connect(folder / "data" / "registry.db")
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def stopped(folder: Path) -> Done:
    """A night with time for nothing."""
    return run(folder, "nightly", "--date", "2026-05-01", "--json", FACTORY_NIGHTLY__SECONDS="0.000001")


@pytest.fixture(scope="module")
def night(folder: Path, stopped: Done) -> Done:
    """The same night without budgets."""
    return run(folder, "nightly", "--date", "2026-05-01", "--json")


TABLES = ("tasks", "evidence", "assessments", "trajectories", "status_events", "policies", "split_tasks")


@pytest.fixture(scope="module")
def again(folder: Path, night: Done) -> tuple[Done, list[Any], list[Any]]:
    """The finished night once more, with the rows of each table before and after."""
    before = [select(folder, f"SELECT count(*) FROM {table}") for table in TABLES]
    done = run(folder, "nightly", "--date", "2026-05-01", "--json")
    return done, before, [select(folder, f"SELECT count(*) FROM {table}") for table in TABLES]


@pytest.fixture(scope="module")
def trained(folder: Path, again: object) -> Done:
    return run(folder, "train", "--name", "whole", "--json")


def test_a_night_out_of_time_ends_cleanly_with_what_it_has(folder: Path, stopped: Done) -> None:
    told = json.loads(stopped.out)
    assert stopped.code == 0
    assert (told["state"], told["candidates"], told["accepted"]) == ("stopped", 0, 0)
    assert told["reason"].startswith("time: ")


def test_progress_is_plain_and_stdout_is_the_result(night: Done) -> None:
    json.loads(night.out)
    assert "\x1b" not in night.err and "\r" not in night.err and "Traceback" not in night.err
    assert "warm start: 1/1" in night.err or "warm start: 1 to do" in night.err


def test_the_same_date_resumes_and_finishes(folder: Path, night: Done) -> None:
    told = json.loads(night.out)
    assert (told["state"], told["reason"], told["candidates"]) == ("finished", "", 20)
    tasks = select(folder, "SELECT digest, status FROM tasks WHERE run = 'nightly/2026-05-01'")
    assert len(tasks) == 20 and {status for _, status in tasks} <= {"accepted", "rejected"}
    assert told["accepted"] == sum(status == "accepted" for _, status in tasks)
    assert select(folder, "SELECT state, reason FROM runs WHERE id = 'nightly/2026-05-01'") == [("finished", "")]
    shards = select(folder, "SELECT stage FROM run_stages WHERE run = 'nightly/2026-05-01' AND stage LIKE 'make %'")
    assert len(shards) == 5


def test_every_accepted_task_has_its_proof(folder: Path, night: Done) -> None:
    listed = json.loads(run(folder, "tasks", "list", "--status", "accepted", "--json").out)
    assert any(row["state"] == "frontier" for row in listed)
    for row in listed:
        assert row["n"] == 4 and row["split"] == "main"
        assert (row["state"] == "frontier") == (0 < row["k"] < row["n"])
    told = json.loads(run(folder, "tasks", "why", listed[0]["digest"], "--json").out)
    validity = next(one["data"] for one in told["evidence"] if one["filter"] == "validity")
    assert [gold["passed"] for gold in validity["gold"]] == [True] * 3
    assert not validity["no_op"]["passed"]


def test_the_finished_night_again_does_nothing(night: Done, again: tuple[Done, list[Any], list[Any]]) -> None:
    done, before, after = again
    assert json.loads(done.out) == json.loads(night.out)
    assert before == after


def test_training_ends_with_a_new_version_and_the_holdout_twice(folder: Path, trained: Done) -> None:
    assert trained.code == 0, trained.err
    told = json.loads(trained.out)
    assert told["training"]["reason"] == "steps" and told["training"]["steps"] == 2
    assert told["holdout"]["before"] == told["training"]["parent"] != told["holdout"]["after"]
    assert "train: 2/2" in trained.err and "\x1b" not in trained.err
    assert "Traceback" not in trained.err


def test_the_report_tells_of_the_training(folder: Path, trained: Done) -> None:
    settings = load_settings(folder / "factory.toml", data=folder / "data")
    with Registry.open(settings.database_url, settings.data / "blobs") as registry:
        found = figures(registry, settings)
    told = json.loads(trained.out)
    (training,) = found["training"]
    assert training["holdout"] == told["holdout"]["parts"]
    assert [step["step"] for step in training["steps"]] == [1, 2]
    for step in training["steps"]:
        (rollouts,) = select(
            folder, f"SELECT count(*) FROM trajectories WHERE purpose='train' AND group_key LIKE '{step['step']}/%'"
        )[0]
        assert step["rollouts"] == rollouts and step["tasks"] > 0
        assert step["interval"]["low"] <= step["interval"]["mean"] <= step["interval"]["high"]
    assert {one["purpose"] for one in found["rollout_costs"]} == {"assess", "evaluate", "train"}
    assert all(one["stage_seconds"] > 0 and one["seconds"]["decode"] > 0 for one in found["rollout_costs"])
    assert "<svg" in page(found)
    done = run(folder, "report", "--out", "report.html")
    assert done.code == 0 and (folder / "report.html").read_text(encoding="utf-8") == page(found)


def test_a_further_evaluation_is_a_run_of_its_own(folder: Path, trained: Done) -> None:
    done = run(folder, "evaluate", "--name", "later", "--json")
    told = json.loads(done.out)
    assert told["run"] == "evaluate/later"
    assert told["policy"] == json.loads(trained.out)["holdout"]["after"]


def test_assessing_the_trained_version_places_the_tasks_anew(folder: Path, trained: Done) -> None:
    told = json.loads(run(folder, "assess", "--limit", "3", "--json").out)
    assert told["assessed"] == 3
    assert told["policy"] == json.loads(trained.out)["holdout"]["after"]


def test_a_failed_stage_marks_the_run_failed(folder: Path, trained: Done) -> None:
    """Another line whose first version cannot be had: its warm start fails after the candidates were made."""
    variables = {"FACTORY_POLICY__LINE": "other", "FACTORY_POLICY__SOURCE": str(folder / "no-such-model")}
    done = run(folder, "nightly", "--date", "2026-05-02", "--json", **variables)
    assert (done.code, done.out) == (2, "")
    assert "no-such-model" in done.err.splitlines()[-1] and "Traceback" not in done.err
    ((state, reason),) = select(folder, "SELECT state, reason FROM runs WHERE date = '2026-05-02'")
    assert state == "failed" and "no-such-model" in reason
    made = select(folder, "SELECT count(*) FROM run_stages WHERE run = 'nightly/2026-05-02' AND stage LIKE 'make %'")
    assert made == [(5,)]
