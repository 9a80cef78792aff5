from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy.exc import IntegrityError

from factory.core.errors import Conflict, NotFound, UserError
from registry.runs import RunState
from registry.store import Registry
from tests.registry.material import candidate

CONFIG = "c" * 64


def test_a_run_is_begun_once_for_a_flow_and_date(registry: Registry, raw: Callable[[str], None]) -> None:
    first = registry.begin_run("nightly", "2026-11-30", CONFIG)
    again = registry.begin_run("nightly", "2026-11-30", CONFIG)
    assert (first.resumed, again.resumed) == (False, True)
    assert first.id == again.id == "nightly/2026-11-30"
    assert first.state is again.state is RunState.RUNNING
    with pytest.raises(Conflict, match="another date"):
        registry.begin_run("nightly", "2026-11-30", "d" * 64)
    registry.begin_run("nightly", "2026-12-01", "d" * 64)
    registry.begin_run("assess", "2026-11-30", "d" * 64)
    assert {run.id for run in registry.runs("nightly")} == {"nightly/2026-11-30", "nightly/2026-12-01"}
    with pytest.raises(IntegrityError):
        raw(
            "INSERT INTO runs (id, flow, date, config, state, reason, created_at) "
            "VALUES ('other', 'nightly', '2026-11-30', '', 'running', '', '')"
        )
    with pytest.raises(UserError):
        registry.begin_run("nightly", "", CONFIG)


def test_a_finished_run_stays_finished_and_a_stopped_one_runs_again(registry: Registry) -> None:
    run = registry.begin_run("nightly", "one", CONFIG).id
    assert registry.finish_run(run, RunState.STOPPED, "token budget").reason == "token budget"
    assert registry.begin_run("nightly", "one", CONFIG).state is RunState.RUNNING
    finished = registry.finish_run(run)
    assert finished.state is RunState.FINISHED and finished.finished_at is not None
    assert registry.finish_run(run).finished_at == finished.finished_at
    assert registry.begin_run("nightly", "one", CONFIG).state is RunState.FINISHED
    with pytest.raises(Conflict):
        registry.finish_run(run, RunState.FAILED)
    with pytest.raises(NotFound):
        registry.finish_run("nightly/absent")


def test_stages_are_replaced_and_events_are_appended(registry: Registry) -> None:
    run = registry.begin_run("nightly", "one", CONFIG).id
    registry.record_stage(run, "validate", {"in": 10, "out": 3}, seconds=1.5)
    registry.record_stage(run, "validate", {"in": 10, "out": 9}, seconds=2.5)
    registry.record_stage(run, "screen", {"in": 9})
    stages = registry.stages(run)
    assert set(stages) == {"validate", "screen"}
    assert (stages["validate"].data, stages["validate"].seconds) == ({"in": 10, "out": 9}, 2.5)
    registry.record_event(run, "validate", "shard done", {"shard": 1})
    registry.record_event(run, "validate", "shard done", {"shard": 1})
    assert [(event.event, event.data) for event in registry.events(run)] == [("shard done", {"shard": 1})] * 2
    with pytest.raises(Conflict):
        registry.record_stage("nightly/absent", "validate", {})
    with pytest.raises(Conflict):
        registry.record_event("nightly/absent", "validate", "shard done")


def test_what_a_run_registered_says_so(registry: Registry) -> None:
    run = registry.begin_run("nightly", "one", CONFIG).id
    digest = registry.register(candidate(registry.blobs), run=run).digest
    assert registry.row(digest).run == run
    with pytest.raises(Conflict):
        registry.register(candidate(registry.blobs, 1), run="nightly/absent")
