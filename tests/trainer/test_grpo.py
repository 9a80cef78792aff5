"""The loop on a torch sampler: learning, resuming bit for bit, stopping, refusing."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from factory.agent.contract import Sampling
from factory.agent.rollout import RolloutConfig, RolloutRequest
from factory.core.errors import StaleWeights, TrainingStopped, UserError
from factory.core.outcome import Termination
from factory.core.trajectory import Trajectory
from trainer.canary import CanaryConfig
from trainer.collect import Collected
from trainer.grpo import GrpoConfig, GrpoRun
from trainer.learner import LearnerConfig
from trainer.metrics import read_metrics

from .support import TorchClient, ToyRollouts, make_task, tiny_llama

TASKS = {task.digest: task for task in map(make_task, range(6))}
NUMBERS = {digest: number for number, digest in enumerate(sorted(TASKS))}
CONFIG = GrpoConfig(
    seed=3,
    steps=2,
    groups=4,
    samples=6,
    rounds=2,
    learner=LearnerConfig(learning_rate=2e-3),
    canary=CanaryConfig(sequences=2, length=16, scored=16, sampled=2),
    rollout=RolloutConfig(sampling=Sampling(temperature=0.7, max_tokens=4)),
)


def make_run(out: Path, config: GrpoConfig = CONFIG, *, broken: str = "", mask_every: int = 0, **more: Any) -> GrpoRun:
    model = tiny_llama()
    client = TorchClient(model, broken=broken)
    parts: dict[str, Any] = {
        "model": model,
        "client": client,
        "engine_dtype": "float32",
        "context": 64,
        "rollouts": ToyRollouts(client, NUMBERS, temperature=0.7, mask_every=mask_every),
        "tasks": TASKS.__getitem__,
        "evidence": dict.fromkeys(TASKS, (3, 6)),
        "out": out,
    }
    return GrpoRun(config, **(parts | more))


def weights(run: GrpoRun) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in run.learner.model.parameters()]


def equal(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_it_learns_a_toy(tmp_path: Path) -> None:
    run = make_run(tmp_path, replace(CONFIG, steps=12, samples=8))
    assert run.run() == "steps"
    metrics = read_metrics(tmp_path / "metrics.jsonl")
    assert [line["step"] for line in metrics] == list(range(1, 13))
    early = sum(line["solved"] for line in metrics[:3]) / 3
    late = sum(line["solved"] for line in metrics[-3:]) / 3
    assert late > early + 0.2


def test_a_run_broken_off_after_one_step_ends_with_the_same_bits(tmp_path: Path) -> None:
    straight = make_run(tmp_path / "straight")
    straight.run()
    make_run(tmp_path / "broken", replace(CONFIG, steps=1)).run()
    resumed = make_run(tmp_path / "broken")
    assert resumed.step == 1
    resumed.run()
    assert equal(weights(straight), weights(resumed))
    assert straight.curriculum.dump() == resumed.curriculum.dump()
    assert straight.version == resumed.version and straight.version.step == straight.learner.steps
    lines = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("straight", "broken")]
    assert [line["policy"] for line in lines[0]] == [line["policy"] for line in lines[1]]
    assert [line["update"] for line in lines[0]] == [line["update"] for line in lines[1]]
    assert lines[0][0]["policy"] != lines[0][1]["policy"]


def test_a_kill_between_log_and_checkpoint_repeats_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path)
    monkeypatch.setattr("trainer.grpo.save_checkpoint", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run.run()
    monkeypatch.undo()
    make_run(tmp_path).run()
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2]


SHORT = replace(CONFIG, steps=4, groups=3, rounds=1)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> GrpoRun:
    run = make_run(tmp_path_factory.mktemp("uninterrupted"), SHORT)
    run.run()
    return run


@pytest.mark.parametrize("stage", ["rollout", "learn", "sync", "canary", "store", "log", "report", "checkpoint"])
def test_broken_off_before_any_stage_it_ends_with_the_same_bits_and_leaves_no_step_unreported(
    tmp_path: Path, uninterrupted: GrpoRun, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    run = make_run(tmp_path, SHORT, sink=lambda step, trajectories: None)
    targets: dict[str, tuple[Any, ...]] = {
        "rollout": (run.collector, "collect"),
        "learn": (run.learner, "update"),
        "sync": ("trainer.grpo.sync_weights",),
        "canary": (run.canary, "check"),
        "store": (run, "sink"),
        "log": (run.log, "append"),
        "checkpoint": ("trainer.grpo.save_checkpoint",),
    }
    reported: list[int] = []

    def killed(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    def report(metrics: dict[str, Any]) -> None:
        if stage not in targets and reported:
            killed()
        reported.append(metrics["step"])
        if stage in targets:
            monkeypatch.setattr(*targets[stage], killed)

    with pytest.raises(KeyboardInterrupt):
        run.run(report=report)
    monkeypatch.undo()
    resumed = make_run(tmp_path, SHORT)
    assert resumed.step == (0 if stage == "checkpoint" else 1)
    rest = seeds_of(uninterrupted)[resumed.step :]
    resumed.run(report=lambda metrics: reported.append(metrics["step"]))
    assert set(reported) == {1, 2, 3, 4}
    assert equal(weights(uninterrupted), weights(resumed))
    assert uninterrupted.curriculum.dump() == resumed.curriculum.dump()
    assert seeds_of(resumed) == rest  # after a resumption the run's first seeds do not come again
    lines = [read_metrics(one.out / "metrics.jsonl") for one in (uninterrupted, resumed)]
    assert all(line["update"]["optimiser_steps"] for line in lines[0])
    for key in ("step", "policy", "reward", "groups", "update"):
        assert [line[key] for line in lines[0]] == [line[key] for line in lines[1]]


def seeds_of(run: GrpoRun) -> list[list[int]]:
    """Seeds of the rollouts of each step that the run did."""
    return [[request.seed for request in requests] for requests in run.collector.rollouts.calls]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"config": replace(CONFIG, samples=5)}, "config"),
        ({"evidence": dict.fromkeys(list(TASKS)[:5], (3, 6))}, "tasks"),
        ({"model": tiny_llama(seed=9)}, "policy"),
    ],
)
def test_another_run_is_refused(tmp_path: Path, changed: dict[str, Any], name: str) -> None:
    make_run(tmp_path, replace(CONFIG, steps=1)).run()
    config = changed.pop("config", CONFIG)
    if "model" in changed:
        client = TorchClient(changed["model"])
        client.version = replace(client.version, weights="1" * 64)
        changed["client"] = client
    with pytest.raises(UserError, match=rf"resume\.{name}"):
        make_run(tmp_path, config, **changed)


def test_budgets_may_change_on_resume(tmp_path: Path) -> None:
    make_run(tmp_path, replace(CONFIG, steps=1)).run()
    assert make_run(tmp_path, replace(CONFIG, steps=None, seconds=0.001)).run() == "seconds"


def test_a_sync_that_was_skipped_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(StaleWeights, match="engine and learner disagree"):
        make_run(tmp_path, broken="weights").run()
    assert read_metrics(tmp_path / "metrics.jsonl") == []  # the step with stale weights is not recorded


def test_sigterm_ends_with_a_checkpoint(tmp_path: Path) -> None:
    run = make_run(tmp_path, replace(CONFIG, steps=50, checkpoint_every=9))
    assert run.run(report=lambda metrics: os.kill(os.getpid(), signal.SIGTERM)) == "terminated"
    assert make_run(tmp_path).step == run.step == 1
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_no_signal_leaves_the_bits_alone(tmp_path: Path) -> None:
    class Hopeless(ToyRollouts):
        def __call__(self, requests: Sequence[RolloutRequest]) -> list[Trajectory]:
            from .support import outcome

            return [replace(one, outcome=outcome(False)) for one in super().__call__(requests)]

    run = make_run(tmp_path)
    run.collector.rollouts = Hopeless(run.client, NUMBERS, temperature=0.7)
    before = weights(run)
    run.run()
    assert equal(before, weights(run))
    last = read_metrics(tmp_path / "metrics.jsonl")[-1]
    assert last["groups"]["informative"] == 0 and last["groups"]["shortfall"] == 4
    assert last["update"]["optimiser_steps"] == 0


def test_updates_without_finite_numbers_stop_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, replace(CONFIG, steps=50, skipped_in_a_row=6))
    values = run.collector._keep

    def poisoned(trajectories: Sequence[Trajectory], result: Any) -> None:
        values(trajectories, result)
        result.groups = [[replace(row, advantage=math.nan) for row in group] for group in result.groups]

    run.collector._keep = poisoned  # type: ignore[method-assign]
    with pytest.raises(TrainingStopped, match="8 updates in a row"):
        run.run()
    assert make_run(tmp_path).progress.skipped == 8  # the next start knows


def test_metrics_say_what_happened(tmp_path: Path) -> None:
    run = make_run(tmp_path, replace(CONFIG, steps=1, masked_share=0.1), mask_every=4)
    seen: list[dict[str, Any]] = []
    stored: list[tuple[int, int]] = []
    solved: list[bool | None] = []

    def sink(step: int, collected: Collected) -> None:
        stored.append((step, len(collected.trajectories)))
        solved.extend(one.outcome.verdict.passed if one.outcome.verdict else None for one in collected.trajectories)

    whole = run.collector.rollouts

    def rollouts(requests: Sequence[RolloutRequest]) -> list[Trajectory]:
        cut = [replace(one, outcome=replace(one.outcome, reason=Termination.TOKEN_LIMIT)) for one in whole(requests)[1::4]]
        return [cut[number // 4] if number % 4 == 1 else one for number, one in enumerate(whole(requests))]

    run.collector.rollouts = rollouts
    run.sink = sink
    run.run(report=seen.append)
    (line,) = read_metrics(tmp_path / "metrics.jsonl")
    assert line == seen[0]
    assert line["masked"] * 4 == line["rollouts"] and line["masked_alarm"] is True
    assert line["truncated"] * 4 == line["rollouts"]
    assert stored == [(1, line["rollouts"])]
    assert line["solved"] == pytest.approx(solved.count(True) / (line["rollouts"] * 3 / 4))  # of those that were scored
    assert line["sampled_tokens"] == 4 * line["rollouts"]
    assert line["groups"]["informative"] + line["groups"]["shortfall"] == 4
    assert set(line["seconds"]) == {"rollout", "learn", "sync", "store"}
    assert 0 < line["update"]["entropy"] < math.log(32)
    assert line["update"]["ratio_min"] <= 1 <= line["update"]["ratio_max"]
    assert line["canary"]["largest"] < 1e-4 and line["canary"]["tokens"] == 2 * (15 + 2)
    assert sum(line["pool"].values()) == 6


@pytest.mark.parametrize("wrong", [{"samples": 1}, {"groups": 0}, {"rounds": 0}, {"steps": None}])
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        replace(CONFIG, **wrong)


def test_temperature_must_be_positive() -> None:
    with pytest.raises(UserError, match="temperature"):
        replace(CONFIG, rollout=RolloutConfig(sampling=Sampling(temperature=0.0)))
