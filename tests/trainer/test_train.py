"""Training for real: vLLM samples, bubblewrap runs, SQLite records, torch learns; and it survives being killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from factory.agent.clients.local import LocalClient
from factory.agent.formats import load_format
from factory.core.assessment import TaskState
from factory.core.digest import digest_of
from factory.core.errors import UserError
from registry.store import Registry
from trainer.evaluate import EvaluationConfig, evaluate, paired_gain
from trainer.grpo import GrpoConfig
from trainer.metrics import read_metrics
from trainer.policies.storage import load_version
from trainer.train import registered_path, run_pool, training_pool, within_context

from .frontier import ENGINE, GRPO, ROLLOUT, World

ROOT = Path(__file__).parents[2]
KILLS = 10


def test_no_frontier_is_a_mistake(tmp_path: Path) -> None:
    with (
        Registry.open(f"sqlite:///{tmp_path}/registry.db", tmp_path / "blobs") as registry,
        pytest.raises(UserError, match="frontier of line tiny"),
    ):
        training_pool(registry, "tiny")


def test_a_policy_is_registered_where_its_data_folder_holds_it(tmp_path: Path) -> None:
    policies = tmp_path / "data" / "policies"
    assert registered_path(policies / "tiny" / "abc", policies) == "policies/tiny/abc"
    assert registered_path(tmp_path / "data" / "other" / ".." / "policies" / "tiny", policies) == "policies/tiny"
    assert registered_path(tmp_path / "elsewhere", policies) == str(tmp_path / "elsewhere")


def test_a_resumed_run_keeps_the_pool_it_began_with(tmp_path: Path) -> None:
    first, second = "a" * 64, "b" * 64
    assert run_pool(tmp_path / "run", lambda: {first: (3, 8)}) == {first: (3, 8)}
    assert run_pool(tmp_path / "run", lambda: {first: (5, 8), second: (1, 8)}) == {first: (3, 8)}
    assert run_pool(tmp_path / "other", lambda: {second: (1, 8)}) == {second: (1, 8)}


def test_episodes_are_no_longer_than_the_engine_takes() -> None:
    config = GrpoConfig(steps=1)
    assert within_context(config, replace(ENGINE, max_context=512)).rollout == replace(config.rollout, max_context=512)
    roomy = replace(ENGINE, max_context=config.rollout.max_context + 1)
    assert within_context(config, roomy).digest() == config.digest()


@pytest.mark.vllm
@pytest.mark.slow
def test_three_steps_for_real(world: World, tmp_path: Path) -> None:
    with world.registry() as registry:
        run = registry.begin_run("train", "test", digest_of("settings")).id
        pool = training_pool(registry, "tiny")
        held_out = registry.query(part="holdout-families")
        assert held_out and not set(pool) & {row.digest for row in held_out}
    result = world.train(tmp_path / "out", GRPO, run=run)
    lines = read_metrics(result.metrics)
    assert [line["step"] for line in lines] == [1, 2, 3] and result.reason == "steps"
    assert all(line["canary"]["largest"] < 1e-4 and line["canary"]["cached_tokens"] == 0 for line in lines)
    assert all(line["masked"] == 0 for line in lines)
    assert all(line["update"]["optimiser_steps"] == 4 for line in lines if line["groups"]["informative"] >= 2)
    with world.registry() as registry:
        assert registry.latest_policy("tiny").version == result.version  # type: ignore[union-attr]
        trained = registry.policy(result.version.name)
        assert trained.parent == load_version(world.policy).weights
        assert trained.path == f"policies/tiny/{result.version.weights}"
        assert set(registry.stages(run)) == {f"train/{step:06d}" for step in (1, 2, 3)}
        stored = registry.trajectories(run=run, purpose="train")
        assert len(stored) == sum(line["rollouts"] for line in lines)
        assert {row.task for row in stored} <= set(pool)
        sampled: dict[tuple[str, str], set[tuple[int, ...]]] = {}
        for one in registry.read_trajectories(stored):
            sampled.setdefault((one.group, one.task), set()).add(one.tokens.ids)
        assert sum(len(different) > 1 for different in sampled.values()) > len(sampled) / 2  # members have seeds of their own


@pytest.mark.vllm
@pytest.mark.slow
def test_learner_and_sampler_agree_on_real_rollouts(world: World, tmp_path: Path) -> None:
    """One epoch of one minibatch: every ratio is taken before the update, so it is 1 up to fp32 noise."""
    config = replace(GRPO, steps=1, learner=replace(GRPO.learner, epochs=1, minibatches=1))
    (line,) = read_metrics(world.train(tmp_path / "out", config).metrics)
    assert line["update"]["ratio_min"] == pytest.approx(1, abs=1e-4)
    assert line["update"]["ratio_max"] == pytest.approx(1, abs=1e-4)


@pytest.mark.vllm
@pytest.mark.slow
def test_evaluation_repeats_and_greedy_is_greedy(world: World) -> None:
    version = load_version(world.policy)
    backend, client = world.backend(), LocalClient(world.policy, version, ENGINE)
    try:
        with world.registry() as registry:
            rows = registry.query(part="holdout-families")[:4] + registry.query(part="train", state=TaskState.FRONTIER)[:4]
            tasks = [(registry.task(row.digest), row.part or "") for row in rows]

            def measure(config: EvaluationConfig) -> tuple[object, list[tuple[int, ...]]]:
                client.reset_prefix_cache()
                result, trajectories = evaluate(
                    tasks,
                    client=client,
                    format=load_format(world.policy),
                    backend=backend,
                    blobs=registry.blobs,
                    config=config,
                )
                return result, [one.tokens.ids for one in trajectories]

            sampled = EvaluationConfig(samples=3, seed=2, rollout=replace(ROLLOUT, held_out=True))
            first, again = measure(sampled), measure(sampled)
            assert first == again
            assert paired_gain(first[0], again[0]).mean == 0  # type: ignore[arg-type]
            assert all(task.held_out_scored == task.scored == 3 for task in first[0].tasks)  # type: ignore[attr-defined]
            greedy = [measure(EvaluationConfig(samples=1, greedy=True, seed=seed, rollout=ROLLOUT))[1] for seed in (0, 1)]
            assert greedy[0] == greedy[1]
            assert len(set(first[1])) > len(greedy[0])
    finally:
        client.close()
        backend.close()


def _child(world: World, out: Path, steps: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.trainer.frontier", str(world.root), str(out), str(steps)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, start_new_session=True)


def _finished(child: subprocess.Popen[bytes]) -> str:
    output, _ = child.communicate(timeout=600)
    assert child.returncode == 0
    return output.decode().strip()


def _await_step(child: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the log has one step more than now: ten kills then do not take ten whole runs."""
    before, deadline = len(read_metrics(log)), time.monotonic() + 300
    while len(read_metrics(log)) <= before and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.vllm
@pytest.mark.long
def test_killed_ten_times_it_ends_with_the_same_bits(world: World, tmp_path: Path) -> None:
    steps = 4 * KILLS
    straight = _finished(_child(world, tmp_path / "straight", steps))
    assert len(straight) == 64
    draw = random.Random(0)
    for number in range(KILLS):
        child = _child(world, tmp_path / "killed", steps)
        if number % 3 == 0:
            time.sleep(draw.uniform(0, 8))  # anywhere, the start among it
        else:
            _await_step(child, tmp_path / "killed" / "metrics.jsonl")
            time.sleep(draw.uniform(0, 1))
        assert child.poll() is None, "it ended before it could be killed"
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    assert _finished(_child(world, tmp_path / "killed", steps)) == straight
    lines = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("straight", "killed")]
    assert [line["step"] for line in lines[1]] == list(range(1, steps + 1))
    assert [line["policy"] for line in lines[0]] == [line["policy"] for line in lines[1]]
