"""A night does each stage once, whatever the starts that it takes, and begins nothing once a budget is used up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from factory.core.errors import UserError
from factory.flows.making import Shard, look_at_sandboxes, shards
from factory.flows.night import Night, Silent
from factory.flows.workshop import Workshop
from factory.settings import Settings, load_settings
from registry.runs import RunState

DAY = date(2026, 3, 1)


def settings_of(data: Path, **flags: Any) -> Settings:
    return load_settings(None, **{"data": data, **flags})


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    monkeypatch.chdir(tmp_path)
    with Workshop.open(settings_of(tmp_path / "data")) as opened:
        yield opened


def begin(shop: Workshop, day: date = DAY) -> Night:
    return Night.begin(shop, day, Silent())


def test_a_stage_is_done_once_over_all_starts(shop: Workshop) -> None:
    done = []

    def work() -> dict[str, Any]:
        done.append(1)
        return {"made": len(done)}

    assert begin(shop).once("stage", work) == {"made": 1}
    assert begin(shop).once("stage", work) == {"made": 1}
    assert begin(shop).once("another", work) == {"made": 2}
    assert begin(shop, date(2026, 3, 2)).once("stage", work) == {"made": 3}


def test_a_stage_that_failed_is_done_again(shop: Workshop) -> None:
    def fail() -> dict[str, Any]:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        begin(shop).once("stage", fail)
    assert begin(shop).once("stage", lambda: {"made": 1}) == {"made": 1}


def test_no_stage_begins_once_a_budget_is_used_up(tmp_path: Path) -> None:
    with Workshop.open(settings_of(tmp_path / "data", nightly={"tokens": 10})) as shop:
        night = begin(shop)
        assert night.once("one", lambda: {"a": 1}) == {"a": 1}
        night.budget.sampled(10)
        assert night.once("two", lambda: pytest.fail("begun without budget")) is None
        assert night.stopped == "tokens: 10 of 10"
        assert night.once("one", lambda: pytest.fail("done already")) == {"a": 1}
        again = begin(shop)
        assert again.once("two", lambda: {"b": 2}) == {"b": 2}
        assert again.stopped == ""


def test_once_stopped_a_night_stays_stopped(tmp_path: Path) -> None:
    """Else a stage over all shards could run although some shards were left out."""
    with Workshop.open(settings_of(tmp_path / "data", nightly={"seconds": 5.0})) as shop:
        night = begin(shop)
        night.budget.started -= 6.0
        assert night.spent()
        night.budget.started += 6.0
        assert night.budget.spent() == "" and night.spent()


def test_the_seconds_of_repeated_stages_add_up(shop: Workshop) -> None:
    for _ in range(2):
        night = begin(shop)
        with night.timed("accept", {"accepted": 3}):
            time.sleep(0.05)
    stage = shop.registry.stages(f"nightly/{DAY}")["accept"]
    assert 0.1 <= stage.seconds < 5.0
    assert stage.data == {"accepted": 3}


def test_a_night_tells_once_what_holds_of_its_sandboxes(shop: Workshop) -> None:
    look_at_sandboxes(begin(shop))
    told = shop.registry.stages(f"nightly/{DAY}")["sandboxes"]
    assert told.data["backend"] == "bubblewrap"
    assert {*told.data["holds"]} >= {
        "no network",
        "no capabilities",
        "system call filter",
        "memory of all processes",
        "disk in all",
    }
    assert told.data["lacks"]["network"].startswith("tasks that ask for it are refused")
    look_at_sandboxes(begin(shop))
    assert shop.registry.stages(f"nightly/{DAY}")["sandboxes"] == told


def test_the_date_decides_the_series_unless_a_seed_is_set(tmp_path: Path) -> None:
    days = [date(2026, 3, day) for day in range(1, 5)]
    with Workshop.open(settings_of(tmp_path / "dated")) as shop:
        seeds = [begin(shop, day).seed for day in days]
        assert seeds == [begin(shop, day).seed for day in days]
    assert len(set(seeds)) == 4
    with Workshop.open(settings_of(tmp_path / "seeded", generate={"seed": 7})) as shop:
        assert {begin(shop, day).seed for day in days} == {7}


def test_a_date_cannot_be_resumed_with_other_settings(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Workshop.open(settings_of(data, policy={"samples": 3})) as shop:
        begin(shop)
    changed = settings_of(data, policy={"samples": 3}, generate={"terminal": 7}, terminal={"pools": 4}, split={"name": "new"})
    with Workshop.open(changed) as shop:
        with pytest.raises(UserError) as raised:
            begin(shop)
        begin(shop, date(2026, 3, 2))
    assert str(raised.value) == (
        f"--date: '{DAY}' is not right; expected another one, or the settings that it was begun with: "
        "generate.terminal 300 (now 7), split.name 'main' (now 'new'), terminal.pools unset (now 4)"
    )
    with Workshop.open(settings_of(data)) as shop, pytest.raises(UserError, match=r"policy\.samples 3 \(now 8\)$"):
        begin(shop)
    budgets: dict[str, Any] = {"nightly": {"seconds": 3.0}, "train": {"steps": 5, "seconds": 9}}
    with Workshop.open(settings_of(data, policy={"samples": 3}, **budgets)) as shop:
        assert begin(shop).run.resumed, "budgets may differ between the starts of one run"


def test_a_run_without_kept_settings_is_refused_too_and_keeps_them_when_resumed(shop: Workshop, tmp_path: Path) -> None:
    """A start that was killed between its run's record and that of its settings."""
    shop.registry.begin_run("nightly", DAY.isoformat(), shop.settings.digest)
    changed = settings_of(tmp_path / "data", generate={"terminal": 7})
    with Workshop.open(changed) as other, pytest.raises(UserError, match="which were not kept"):
        begin(other)
    begin(shop)
    with Workshop.open(changed) as other, pytest.raises(UserError, match=r"generate\.terminal 300 \(now 7\)"):
        begin(other)


def test_single_stages_have_runs_of_their_own_without_budgets(tmp_path: Path) -> None:
    with Workshop.open(settings_of(tmp_path / "data", nightly={"tokens": 1})) as shop:
        night = Night.occasion(shop, "assess/tiny", seed=3, progress=Silent())
        night.budget.sampled(100)
        assert not night.spent()
        assert (night.run.id, night.run.state) == ("command/assess/tiny", RunState.RUNNING)


def test_shards_cover_each_series_once_the_slowest_kind_first(tmp_path: Path) -> None:
    counts = {"repository": 0, "database": 5, "terminal": 12}
    with Workshop.open(settings_of(tmp_path / "data", generate=counts, nightly={"shard": 5})) as shop:
        found = shards(begin(shop))
    assert [shard.name for shard in found] == ["database 0-4", "terminal 0-4", "terminal 5-9", "terminal 10-11"]
    assert [shard.count for shard in found] == [5, 5, 5, 2]
    assert isinstance(found[0], Shard)


def test_shards_of_repository_tasks_are_smaller(tmp_path: Path) -> None:
    counts = {"repository": 5, "database": 16, "terminal": 0}
    with Workshop.open(settings_of(tmp_path / "data", generate=counts, nightly={"shard": 16})) as shop:
        found = [shard.name for shard in shards(begin(shop))]
    assert found == ["repository 0-1", "repository 2-3", "repository 4-4", "database 0-15"]
