"""Twenty kills of the nightly flow and ten of training: what stands at the end is what stands without them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from registry.store import Registry

from .killing import Killer, Moments, mounts, report, select, timed, unfinished

pytestmark = [pytest.mark.long, pytest.mark.vllm]

CONFIG = """\
[generate]
terminal = 30
database = 10
repository = 4

[split]
compositions = 6

[nightly]
shard = 5

[repository]
projects = ["webcolors", "schema"]
apart = []

[terminal]
families = ["make", "write", "delete"]
apart = ["store"]
apart_percent = 20
depth_weights = [1]
pools = 2

[policy]
samples = 4
max_context = 256
max_tokens = 24
kv_cache_gib = 0.2

[policy.shares]
database = 0.0
repository = 0.0

[warmstart]
gate = 0.3
gate_every = 10
gate_examples = 64
checkpoint_seconds = 1.0
max_steps = 400

[evaluate]
samples = 2

[train]
steps = 6
groups = 6
samples = 4
"""
FIRST = date(2026, 1, 1)
KILLS, TRAINING_KILLS = 20, 10


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "kills.toml"
    path.write_text(CONFIG)
    return path


def nightly(config: Path, data: Path, day: date) -> tuple[str, ...]:
    return ("nightly", "--config", str(config), "--data", str(data), "--date", day.isoformat())


def train(config: Path, data: Path, number: int) -> tuple[str, ...]:
    return ("train", "--config", str(config), "--name", f"kills-{number}", "--data", str(data))


def days() -> Iterator[date]:
    """One night after the other: a night that ends before its kill is followed by the next."""
    return (FIRST + timedelta(days=number) for number in range(1000))


@pytest.fixture(scope="module")
def whole(config: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float, float]:
    """A folder with an uninterrupted first night, and how long it took until its first stage and in all."""
    data = tmp_path_factory.mktemp("whole") / "data"
    begin, seconds = timed(nightly(config, data, FIRST), "fetch", data.parent / "log")
    return data, begin, seconds


def content(data: Path) -> set[tuple[str, str]]:
    found = select(data, "SELECT digest, status FROM tasks")
    assert len(found) == len(set(found))
    return set(found)


def versions(data: Path) -> list[tuple[str, str, int]]:
    return select(data, "SELECT line, weights, step FROM policies ORDER BY id")


def sound(data: Path) -> None:
    """Every blob and the audit chain are whole, no split leaks, nothing half made is left."""
    with Registry.open(f"sqlite:///{data / 'registry.db'}", data / "blobs") as registry:
        assert registry.verify().problems == ()
    assert unfinished(data) == []
    assert mounts(data) == []


def test_twenty_kills_of_the_nightly_flow(config: Path, whole: tuple[Path, float, float], tmp_path: Path) -> None:
    reference, begin, seconds = whole
    data = tmp_path / "data"
    moments = Moments(begin, seconds, random.Random(20))
    killers = []
    for day in days():
        killer = Killer(nightly(config, data, day), tmp_path / "log")
        killers.append((day, killer))
        done = False
        while not done and sum(len(one.kills) for _, one in killers) < KILLS:
            done = killer.run(moments.next())
        if not done:
            assert killer.run()
            break
    for day, _ in killers[1:]:
        assert Killer(nightly(config, reference, day), reference.parent / "log").run()
    kills = [round(at, 1) for _, killer in killers for at in killer.kills]
    report(
        "nightly", begin=round(begin, 1), whole=round(seconds, 1), nights=len(killers), tasks=len(content(data)), kills=kills
    )
    assert len(kills) == KILLS
    assert content(data) == content(reference)
    assert len(content(data)) > 0
    assert {status for _, status in content(data)} <= {"accepted", "rejected"}
    assert versions(data) == versions(reference)
    nights = select(data, "SELECT date, state FROM runs WHERE flow = 'nightly' ORDER BY date")
    assert nights == [(day.isoformat(), "finished") for day, _ in killers]
    assert select(data, "SELECT count(*) FROM assessments GROUP BY run, task HAVING count(*) > 1") == []
    rollouts = select(data, "SELECT DISTINCT count(*) FROM trajectories WHERE outcome = 'scored' GROUP BY run, task")
    assert rollouts == [(4,)]
    assert [left for _, killer in killers for left in killer.left()] == []
    sound(data)


def test_ten_kills_of_training(config: Path, whole: tuple[Path, float, float], tmp_path: Path) -> None:
    """Runs one after the other, each from the version that the one before it made, until ten kills have met them."""
    reference, _, _ = whole
    data = tmp_path / "data"
    shutil.copytree(reference, data, ignore=shutil.ignore_patterns("cache", "prefect"))
    begin, seconds = timed(train(config, reference, 1), "train: 6 to do", tmp_path / "out")
    moments, killers = Moments(begin, seconds, random.Random(10)), []
    while sum(len(killer.kills) for killer in killers) < TRAINING_KILLS:
        killer = Killer(train(config, data, len(killers) + 1), tmp_path / "log")
        killers.append(killer)
        done = False
        while not done and sum(len(one.kills) for one in killers) < TRAINING_KILLS:
            done = killer.run(moments.next())
        assert done or killer.run()
    for number in range(2, len(killers) + 1):
        assert Killer(train(config, reference, number), reference.parent / "log").run()
    kills = [round(at, 1) for killer in killers for at in killer.kills]
    report("train", begin=round(begin, 1), whole=round(seconds, 1), runs=len(killers), kills=kills)
    assert len(kills) == TRAINING_KILLS
    steps = select(data, "SELECT count(*) FROM run_stages WHERE stage LIKE 'train/%' GROUP BY run")
    assert steps == [(6,)] * len(killers)
    assert versions(data) == versions(reference)
    assert _evaluations(data) == _evaluations(reference)
    assert _rollouts(data) == _rollouts(reference)
    assert [left for killer in killers for left in killer.left()] == []
    sound(data)


def _evaluations(data: Path) -> list[tuple[str, str, str]]:
    return select(
        data, "SELECT run, stage, data FROM run_stages WHERE run LIKE 'train/%' AND stage LIKE 'evaluate %' ORDER BY run, stage"
    )


def _rollouts(data: Path) -> list[tuple[str, str, str, int, int]]:
    """What was rolled out, in training and evaluation, with its outcome."""
    return select(
        data,
        "SELECT run, purpose, group_key, member, solved FROM trajectories WHERE run LIKE 'train/%' "
        "ORDER BY run, purpose, group_key, member, policy",
    )
