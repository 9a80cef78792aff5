"""Figures: they agree with the database, counted in another way, and cost no statement per task."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from sqlalchemy import event

from factory.core.assessment import Evidence, TaskStatus
from factory.flows.auditing import audit_contamination
from factory.flows.workshop import Workshop
from factory.report.collect import figures
from factory.settings import load_settings
from registry.store import Registry

from ..small import DAY, Small
from .conftest import figures_of
from .trained import SAMPLES


def select(data: Path, statement: str) -> list[Any]:
    connection = sqlite3.connect(data / "registry.db")
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_figures_are_json_and_the_same_each_time(trained: Small, found: dict[str, Any]) -> None:
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(json.dumps(figures_of(trained)))


def test_totals(trained: Small, found: dict[str, Any]) -> None:
    totals = found["totals"]
    tasks, rollouts, sampled = select(
        trained.data,
        "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM trajectories), (SELECT sum(sampled) FROM trajectories)",
    )[0]
    assert (totals["tasks"], totals["rollouts"], totals["sampled_tokens"]) == (tasks, rollouts, sampled)
    by_part = dict(select(trained.data, "SELECT part, count(*) FROM split_tasks GROUP BY part"))
    assert totals["training_tasks"] == by_part["train"]
    assert totals["holdout_tasks"] == sum(by_part.values()) - by_part["train"]


def test_what_was_judged_at_a_later_start_is_no_longer_unjudged(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Registry.open(copy.settings.database_url, copy.data / "blobs") as registry:
        (run,) = registry.runs("nightly")
        stage = next(name for name in registry.stages(run.id) if name.startswith("make terminal"))
        shard = registry.stages(run.id)[stage].data
        registry.record_stage(run.id, stage, {**shard, "not_judged": ["SandboxLost: gone", "SandboxLost: gone"]})
        expected = [{"kind": "terminal", "fault": "SandboxLost: gone", "tasks": 2}]
        assert figures(registry, copy.settings)["funnel"]["not_judged"] == expected
        left = {"judged_again": 2, "not_judged": [{"kind": "terminal", "fault": "SandboxLost: still gone"}]}
        registry.record_stage(run.id, "judge again", left)
        expected = [{"kind": "terminal", "fault": "SandboxLost: still gone", "tasks": 1}]
        assert figures(registry, copy.settings)["funnel"]["not_judged"] == expected


def test_funnel(trained: Small, found: dict[str, Any]) -> None:
    (kind,) = found["funnel"]["kinds"].items()
    name, counts = kind
    assert name == "terminal"
    assert counts["asked"] == counts["generated"] == counts["registered"] == counts["accepted"] == len(trained.digests)
    assert counts["known_before"] == counts["rejected"] == 0
    assert sum(counts["states"].values()) == counts["accepted"]
    seconds = select(trained.data, "SELECT sum(seconds) FROM run_stages WHERE stage LIKE 'make %'")[0][0]
    assert counts["make_seconds_per_accepted"] == pytest.approx(seconds / len(trained.digests))
    spent = select(trained.data, "SELECT sum(seconds) FROM run_stages WHERE run LIKE 'nightly/%'")[0][0]
    assert found["funnel"]["stage_seconds_per_accepted"] == pytest.approx(spent / len(trained.digests))


def test_refused_tasks_are_counted_by_filter_with_their_reasons(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    reasons = [
        (TaskStatus.QUARANTINED, "solvability: the verifier is broken"),
        (TaskStatus.QUARANTINED, "solvability: the verifier is broken"),
        (TaskStatus.WITHDRAWN, "made in error: twice"),
    ]
    with Registry.open(copy.settings.database_url, copy.data / "blobs") as registry:
        registry.set_status_many([(digest, *one) for digest, one in zip(small.digests, reasons, strict=False)])
    refused = figures_of(copy)["funnel"]["refused"]
    assert refused == [
        {
            "kind": "terminal",
            "status": "quarantined",
            "filter": "solvability",
            "tasks": 2,
            "reasons": [{"reason": "the verifier is broken", "tasks": 2}],
        },
        {
            "kind": "terminal",
            "status": "withdrawn",
            "filter": "",
            "tasks": 1,
            "reasons": [{"reason": "made in error: twice", "tasks": 1}],
        },
    ]
    assert figures_of(copy)["funnel"]["kinds"]["terminal"]["accepted"] == len(small.digests) - 3


def test_pass_rates_are_those_of_the_latest_assessments(trained: Small, found: dict[str, Any]) -> None:
    expected = select(trained.data, "SELECT successes, rollouts FROM assessments JOIN task_states ON assessment = id")
    told = [(one["k"], one["n"]) for one in found["pass_rates"] for _ in range(one["tasks"])]
    assert sorted(told) == sorted(expected)


def test_another_line_has_no_assessments(trained: Small) -> None:
    settings = load_settings(trained.config, data=trained.data, policy={"line": "another"})
    with Registry.open(settings.database_url, trained.data / "blobs") as registry:
        told = figures(registry, settings)
    assert told["pass_rates"] == []
    assert told["funnel"]["kinds"]["terminal"]["states"]["unassessed"] == len(trained.digests)
    assert told["totals"]["policies"] == 0


def test_training_steps_with_intervals_over_tasks(trained: Small, found: dict[str, Any]) -> None:
    (run,) = found["training"]
    assert (run["run"], run["state"], run["reason"]) == ("train/first", "finished", "steps")
    assert [step["step"] for step in run["steps"]] == [1, 2]
    for step in run["steps"]:
        rows = select(
            trained.data,
            "SELECT task, avg(solved) FROM trajectories WHERE purpose = 'train' "
            f"AND group_key LIKE '{step['step']}/%' GROUP BY task",
        )
        assert step["tasks"] == len(rows) == 2
        assert step["interval"]["mean"] == pytest.approx(fmean(rate for _, rate in rows))
        assert step["interval"]["low"] <= step["interval"]["mean"] <= step["interval"]["high"]
        # Two tasks: every resampled mean is one of three, and the extremes have a quarter of the draws each.
        assert {step["interval"]["low"], step["interval"]["high"]} == {min(r for _, r in rows), max(r for _, r in rows)}


def test_holdout_before_and_after(trained: Small, found: dict[str, Any]) -> None:
    parts = found["training"][0]["holdout"]
    by_part = dict(select(trained.data, "SELECT part, count(*) FROM split_tasks WHERE part != 'train' GROUP BY part"))
    assert {name: one["tasks"] for name, one in parts.items() if name != "all"} == by_part
    assert parts["all"]["after"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    before, after = found["evaluations"]
    assert before["parts"]["all"]["rollouts"] == SAMPLES * sum(by_part.values())
    solved = select(
        trained.data, f"SELECT avg(solved) FROM trajectories WHERE policy = '{before['policy']}' AND purpose='evaluate'"
    )
    assert before["parts"]["all"]["rate"]["mean"] == pytest.approx(solved[0][0])
    assert after["policy"] == found["training"][0]["after"] == "tiny@" + ("ab" * 32)[:12]


def test_gaps_count_rollouts_that_both_verifiers_judged(trained: Small, found: dict[str, Any]) -> None:
    expected = select(
        trained.data,
        "SELECT purpose, count(*), sum(solved), sum(held_out_solved), sum(solved AND NOT held_out_solved) FROM trajectories "
        "WHERE held_out_solved IS NOT NULL AND outcome = 'scored' GROUP BY purpose ORDER BY purpose",
    )
    names = ("purpose", "judged", "solved", "held_out_solved", "only_verifier")
    assert [tuple(one[name] for name in names) for one in found["verifier_gaps"]] == expected != []


def test_costs(trained: Small, found: dict[str, Any]) -> None:
    (task,) = found["task_costs"]
    sampled = select(trained.data, "SELECT sum(sampled) FROM trajectories WHERE purpose = 'assess'")[0][0]
    assert task["assess_sampled_tokens"] == pytest.approx(sampled / len(trained.digests))
    assert task["assess_rollouts"] == 3
    by_purpose = {one["purpose"]: one for one in found["rollout_costs"]}
    assert set(by_purpose) == {"assess", "evaluate", "train"}
    evaluated = by_purpose["evaluate"]
    assert evaluated["stage_seconds"] == pytest.approx(24.0 / evaluated["rollouts"])
    assert by_purpose["train"]["stage_seconds"] == pytest.approx(8.0 / by_purpose["train"]["rollouts"])
    for one in by_purpose.values():
        assert one["seconds"]["measured"] == one["rollouts"]
        assert one["seconds"]["verify"] > 0 and one["seconds"]["reset"] > 0


def test_seconds_of_rollouts_are_the_means_of_the_stored_ones(trained: Small, found: dict[str, Any]) -> None:
    with Registry.open(trained.settings.database_url, trained.data / "blobs") as registry:
        bodies = list(registry.read_trajectories(registry.trajectories(purpose="evaluate")))
    told = next(one for one in found["rollout_costs"] if one["purpose"] == "evaluate")["seconds"]
    assert told["environment"] == pytest.approx(fmean(sum(turn.environment_s for turn in one.turns) for one in bodies))
    assert told["verify"] == pytest.approx(fmean(one.outcome.verify_s for one in bodies))
    assert told["queue"] == pytest.approx(fmean(one.queue_s for one in bodies))


def test_runs_newest_first_with_their_stages(found: dict[str, Any]) -> None:
    train, night = found["runs"]
    assert (train["run"], night["run"]) == ("train/first", f"nightly/{DAY}")
    assert {one["stage"]: (one["parts"], one["seconds"]) for one in train["stages"]} == {
        "evaluate": (2, 24.0),
        "train": (2, 8.0),
    }
    assert [one["stage"] for one in night["stages"]] == ["make terminal", "screen", "split", "assess", "accept"]
    assert night["wall_seconds"] > 0


@pytest.mark.slow
def test_contamination_without_and_with_an_audit(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        match = Evidence(
            filter="contamination", rule="the rule", passed=False, reason="matches human-eval/7", data={"texts": {}}
        )
        shop.registry.add_evidence(small.digests[2], match.__class__(**{**vars(match), "data": {"too_short_to_judge": False}}))
    told = figures_of(copy)["contamination"]
    assert told["audit"] is None
    assert told["contamination"]["judged"] == len(small.digests)
    assert [(one["task"], one["reason"]) for one in told["contamination"]["shown"]] == [
        (small.digests[2], "matches human-eval/7")
    ]
    with Workshop.open(copy.settings) as shop:
        record = audit_contamination(copy.settings, shop.registry)
    audit = figures_of(copy)["contamination"]["audit"]
    assert audit["certified"] == record["certified"]
    assert {kind: one["found"] for kind, one in audit["planted"].items()} == {
        kind: one["found"] for kind, one in record["planted"].items()
    }


def test_an_empty_registry_has_figures_too(tmp_path: Path) -> None:
    settings = load_settings(None, data=tmp_path)
    with Registry.open(settings.database_url, tmp_path / "blobs") as registry:
        told = figures(registry, settings)
    assert told["as_of"] is None and told["totals"]["tasks"] == 0
    assert told["funnel"]["kinds"] == {} and told["training"] == [] and told["runs"] == []


def test_more_tasks_and_rollouts_cost_no_more_statements(trained: Small, small: Small, tmp_path: Path) -> None:
    """Runs may (there are few); tasks, evidence and rollouts must not."""
    few = small.copy(tmp_path / "few")
    with sqlite3.connect(few.data / "registry.db") as connection:
        kept = small.digests[0]
        connection.execute("PRAGMA foreign_keys = OFF")
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        for table in ("evidence", "trajectories", "task_states", "assessments", "split_tasks", "task_families", "origins"):
            connection.execute(f"DELETE FROM {table} WHERE task != ?", (kept,))
        connection.execute("DELETE FROM tasks WHERE digest != ?", (kept,))
    connection.close()
    assert figures_of(few)["totals"]["tasks"] == 1
    assert _statements(few) == _statements(small)


def _statements(data: Small) -> int:
    with Registry.open(data.settings.database_url, data.data / "blobs") as registry:
        count = 0

        def counted(*_: object) -> None:
            nonlocal count
            count += 1

        event.listen(registry._database.engine, "before_cursor_execute", counted)
        figures(registry, data.settings)
    return count
