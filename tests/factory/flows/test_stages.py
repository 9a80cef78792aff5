"""The stages on real parts: the same night twice gives the same tasks once; another seed gives others."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from factory.core.assessment import TaskStatus
from factory.core.errors import UserError
from factory.core.task import TaskKind
from factory.flows import assessing, making, policy_line, screening, splitting
from factory.flows.commands import generate
from factory.flows.night import Night, Silent
from factory.flows.replay import replay_task
from factory.flows.workshop import Workshop
from registry.runs import RunState
from registry.store import Registry

from ..small import DAY, Oracle, Small, begin, make_all, small_settings


def test_the_same_night_again_makes_nothing_new(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        audited = len(shop.registry.audit_log(limit=10_000))
        night = begin(shop)
        assert night.run.resumed
        assert tuple(make_all(night)) == small.digests
        screening.screen(night, small.digests)
        assert screening.judge(night, small.digests) == {}
        splitting.split(night, small.digests)
        assert assessing.accept(night, small.digests, "tiny")["accepted"] == len(small.digests)
        assert shop.registry.counts()[TaskStatus.ACCEPTED] == sum(shop.registry.counts().values()) == len(small.digests)
        changes = shop.registry.audit_log(limit=10_000)[: len(shop.registry.audit_log(limit=10_000)) - audited]
        assert [entry.action for entry in changes] == []


def test_a_later_night_of_the_same_series_registers_nothing_new(small: Small, tmp_path: Path) -> None:
    """Made again from nothing: equal digests come from equal content, not from the first night's records."""
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        later = Night.begin(shop, date(2026, 1, 3), Silent())
        assert later.seed == begin(shop).seed
        made = making.make(later, making.Shard(TaskKind.TERMINAL, 0, 3))
        record = shop.registry.stages(later.run.id)["make terminal 0-2"].data
        assert tuple(made) == small.digests[:3]
        assert (record["asked"], record["generated"], record["new"], record["not_judged"]) == (3, 3, 0, [])


def test_another_seed_gives_other_tasks(small: Small, tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "data", count=3, generate={"seed": 2})
    with Workshop.open(settings) as shop:
        others = make_all(begin(shop))
        assert len(others) == 3 and not set(others) & set(small.digests)
        for digest in others:
            filters = {one.filter: one.passed for one in shop.registry.evidence(digest)}
            assert filters == {"validity": True, "loopholes": True}


def test_a_task_without_screening_is_not_accepted(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        night = begin(shop, date(2026, 1, 4))
        (fresh,) = making.make(night, making.Shard(TaskKind.TERMINAL, 700, 1))
        (known,) = shop.registry.assessments(small.digests[0])
        shop.registry.add_assessments([type(known)(**{**vars(known), "task": fresh})])
        assert assessing.accept(night, [fresh], "tiny") == {"accepted": 0, "states": {}}
        screening.screen(night, [fresh])
        assert assessing.accept(night, [fresh], "tiny")["accepted"] == 1


def test_what_a_fault_left_unjudged_is_judged_at_the_next_start(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        night = begin(shop, date(2026, 1, 9))
        (found,) = shop.generators[TaskKind.TERMINAL].generate(shop.blobs, seed=night.seed, start=900, count=1)
        (registered,) = shop.registry.register_many([found], run=night.run.id)
        fresh = registered.digest
        screening.screen(night, [fresh])
        (known,) = shop.registry.assessments(small.digests[0])
        shop.registry.add_assessments([type(known)(**{**vars(known), "task": fresh})])
        evidence = next(one for one in shop.registry.evidence(small.digests[0]) if one.filter == "validity")
        shop.registry.add_evidence(fresh, evidence)
        assert assessing.accept(night, [fresh], "tiny")["accepted"] == 0  # nobody has tried to cheat it
        assert making.judge_again(night, [*small.digests, fresh]) == {"judged_again": 1, "not_judged": []}
        assert "loopholes" in {one.filter for one in shop.registry.evidence(fresh)}
        assert assessing.accept(night, [fresh], "tiny")["accepted"] == 1
        assert making.judge_again(night, [fresh]) == {"judged_again": 0, "not_judged": []}


def test_what_a_filter_refuses_is_rejected_with_its_reason(small: Small, tmp_path: Path) -> None:
    """The task of another series with the text of a known one is its duplicate."""
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        night = begin(shop, date(2026, 1, 5))
        (fresh,) = making.make(night, making.Shard(TaskKind.TERMINAL, 800, 1))
        evidence = next(one for one in shop.registry.evidence(fresh) if one.filter == "validity")
        shop.registry.add_evidence(fresh, type(evidence)(**{**vars(evidence), "passed": False, "reason": "gold fails"}))
        assert screening.judge(night, [fresh]) == {"validity": 1}
        row = shop.registry.row(fresh)
        assert row is not None and (row.status, row.reason) == (TaskStatus.REJECTED, "validity: gold fails")
        assert screening.judge(night, [fresh]) == {}


def test_later_tasks_join_the_sealed_split_without_touching_the_holdout(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        before = shop.registry.split("main").parts
        night = begin(shop, date(2026, 1, 6))
        fresh = making.make(night, making.Shard(TaskKind.TERMINAL, 600, 4))
        screening.screen(night, fresh)
        splitting.split(night, fresh)
        after = shop.registry.split("main").parts
        assert {name: count for name, count in after.items() if name != "train"} == {
            name: count for name, count in before.items() if name != "train"
        }
        assert shop.registry.check_split("main") == []
        held = splitting.withheld(shop, small.digests)
        parts = shop.registry.key_parts("main", held)
        assert held and "train" not in parts.values()


def test_wanted_is_what_is_unassessed_and_open(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        policy = shop.registry.latest_policy("tiny")
        assert policy is not None
        night = begin(shop, date(2026, 1, 7))
        fresh = making.make(night, making.Shard(TaskKind.TERMINAL, 500, 2))
        wanted = assessing.wanted(night, fresh, policy)
        assert wanted[:2] == fresh
        shop.registry.set_status(fresh[0], TaskStatus.REJECTED, "validity: no")
        assert assessing.wanted(night, fresh, policy)[:1] == fresh[1:]


def test_generating_a_kind_alone(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    told = generate(copy.settings, TaskKind.TERMINAL, seed=1, start=0, count=2, progress=Silent())
    assert (told["candidates"], told["valid"]) == (2, 2)
    with Registry.open(copy.settings.database_url, copy.data / "blobs") as registry:
        assert sum(registry.counts().values()) == len(small.digests), "the same seed as the night's: nothing new"
        assert registry.run(told["run"]).state.value == "finished"
    with pytest.raises(UserError, match=r"generate\.repository"):
        generate(copy.settings, TaskKind.REPOSITORY, seed=1, start=0, count=2, progress=Silent())


def test_a_replay_disagrees_where_the_solution_is_not_one(small: Small, tmp_path: Path) -> None:
    """The solution of another task, on this one's environment and verifier."""
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        first, second = (shop.registry.candidate(digest) for digest in small.digests[:2])
        told = replay_task(copy.settings, shop.registry, first.task.digest, 1)
        assert told["agrees"] and told["gold"][0]["held_out_passed"] is True
        wrong = type(first.task)(**{**vars(first.task), "solution": second.task.solution})
        mixed = type(first)(**{**vars(first), "task": wrong, "name": "terminal/mixed"})
        shop.registry.register(mixed)
        told = replay_task(copy.settings, shop.registry, "terminal/mixed", 1)
        assert not told["agrees"] and not told["gold"][0]["solved"]


def test_the_night_of_the_fixture_is_finished(small: Small) -> None:
    with Registry.open(small.settings.database_url, small.data / "blobs") as registry:
        assert registry.run(f"nightly/{DAY}").state.value == "finished"
        assert registry.verify().problems == ()


def test_rollouts_stored_before_a_kill_are_not_stored_twice(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Workshop.open(copy.settings) as shop:
        rows = shop.registry.trajectories(purpose="assess")
        again = list(shop.registry.read_trajectories(rows))
        assessing.store_once(shop.registry, again, purpose="assess", run=f"nightly/{DAY}")
        assert len(shop.registry.trajectories(purpose="assess")) == len(rows)
        other = shop.registry.begin_run("nightly", "2026-01-09", copy.settings.digest)
        assessing.store_once(shop.registry, again, purpose="assess", run=other.id)
        assert len(shop.registry.trajectories(purpose="assess")) == 2 * len(rows)


def test_a_first_version_whose_warm_start_was_not_registered_is_not_the_lines_policy(small: Small, tmp_path: Path) -> None:
    """As a kill between the two leaves it: the next start warm starts the same version."""
    copy = small.copy(tmp_path / "data")
    settings = small_settings(copy.data, warmstart={"max_steps": 2, "gate_every": 1, "gate_examples": 16, "demonstrations": 64})
    with Workshop.open(settings) as shop:
        first = shop.registry.latest_policy("tiny")
        assert first is not None and first.parent is None
        done = policy_line.ensure_policy(shop, seed=1, withheld=frozenset())
        assert (done["made"], done["warm_started"], done["ended"], done["steps"]) == (True, True, "steps", 2)
        assert [one.parent for one in shop.registry.policies("tiny")] == [None, first.version.weights]
        assert policy_line.ensure_policy(shop, seed=1, withheld=frozenset())["made"] is False


def test_assessing_ends_between_batches_where_the_tokens_are_used_up(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    with Workshop.open(small_settings(copy.data, nightly={"tokens": 1})) as shop:
        policy = shop.registry.latest_policy("tiny")
        assert policy is not None
        night = begin(shop, date(2026, 1, 8))
        client = Oracle(shop, policy, [shop.registry.task(digest) for digest in small.digests])
        first = assessing.assess(night, small.digests[:2], policy, client)
        assert first is not None and first["assessed"] == 2
        assert assessing.assess(night, small.digests[2:4], policy, client) is None
        assert night.stopped == f"tokens: {night.budget.tokens} of 1"
        sampled = sum(row.sampled for row in shop.registry.trajectories(run=night.run.id))
        assert night.budget.tokens == sampled > 1
        shop.registry.finish_run(night.run.id, RunState.STOPPED, night.stopped)
        resumed = begin(shop, date(2026, 1, 8))
        assert resumed.run.state is RunState.RUNNING and not resumed.spent()
