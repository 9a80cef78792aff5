"""A training's records in a copy of the small data folder: evaluations by the trainer's own code on scripted policies.

The steps are written as the loop writes them; tests/factory/flows/test_whole_way.py reads those of a real training.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from factory.agent.formats import load_format
from factory.agent.rollout import RolloutConfig
from factory.core.outcome import OutcomeKind
from factory.core.trajectory import Trajectory
from factory.flows import policy_line
from factory.flows.training import compare, holdout
from factory.flows.workshop import Workshop
from registry.policies import PolicyRow
from registry.runs import RunState
from trainer.evaluate import Evaluation, EvaluationConfig, evaluate

from ..small import Oracle, Small

SAMPLES = 4
STEPS = ((0.25, 6), (0.5, 8))
"""Share solved and informative groups of each step, of eight groups drawn."""


def add_training(small: Small, folder: Path) -> Small:
    """Record run `train/first` with two evaluations, two steps and their rollouts, and a summary."""
    copy = small.copy(folder)
    with Workshop.open(copy.settings) as shop:
        policy = shop.registry.latest_policy("tiny")
        assert policy is not None
        run = shop.registry.begin_run("train", "first", copy.settings.digest)
        before = _evaluated(shop, policy, run.id, gives_up=True)
        for number, (solved, informative) in enumerate(STEPS, 1):
            _rollouts(shop, policy, run.id, number)
            shop.registry.record_stage(run.id, f"train/{number:06d}", _metrics(number, solved, informative), seconds=4.0)
        later = replace(policy.version, weights="ab" * 32, step=policy.version.step + 2)
        shop.registry.add_policy(later, path="policies/later", format="tiny", parent=policy.version.weights)
        after = _evaluated(shop, replace(policy, version=later), run.id, gives_up=False)
        training = {"policy": later.name, "parent": policy.version.name, "steps": 2, "reason": "steps", "elapsed_s": 8.0}
        summary = {"run": run.id, "training": training, "holdout": compare(before, after)}
        shop.registry.record_stage(run.id, "summary", summary, seconds=8.0)
        shop.registry.finish_run(run.id, RunState.FINISHED)
    return copy


def _evaluated(shop: Workshop, policy: PolicyRow, run: str, *, gives_up: bool) -> Evaluation:
    tasks = holdout(shop)
    client = Oracle(shop, policy, [task for task, _ in tasks], gives_up=gives_up)
    found, trajectories = evaluate(
        tasks,
        client=client,
        format=load_format(policy_line.folder_of(shop, policy)),
        backend=shop.backend,
        blobs=shop.blobs,
        config=EvaluationConfig(samples=SAMPLES, rollout=RolloutConfig(max_context=512)),
    )
    shop.registry.add_trajectories(trajectories, purpose="evaluate", run=run)
    shop.registry.record_stage(run, f"evaluate {policy.version.name}", found.as_json(), seconds=12.0)
    return found


def _rollouts(shop: Workshop, policy: PolicyRow, run: str, step: int) -> None:
    """The assessments' rollouts again as those of a step: two groups of three."""
    rows = [row for row in shop.registry.trajectories(purpose="assess") if row.outcome is OutcomeKind.SCORED]
    chosen = sorted({row.task for row in rows})[step : step + 2]
    found = shop.registry.read_trajectories([row for row in rows if row.task in chosen])
    shop.registry.add_trajectories([_of_step(one, step) for one in found], purpose="train", run=run)


def _of_step(trajectory: Trajectory, step: int) -> Trajectory:
    return replace(trajectory, group=f"{step}/{trajectory.task}")


def _metrics(step: int, solved: float, informative: int) -> dict[str, Any]:
    return {
        "step": step,
        "policy": "tiny@0123456789ab",
        "elapsed_s": 4.0 * step,
        "reward": solved,
        "solved": solved,
        "rollouts": 6,
        "masked": 0,
        "masked_alarm": False,
        "groups": {"drawn": 8, "informative": informative, "uniform": 8 - informative, "shortfall": 0, "rounds": 1},
        "update": {"loss": 0.1, "entropy": 0.5, "kl_behaviour": 0.01},
        "canary": {"largest": 1e-6, "mean": 1e-7, "tokens": 120, "cached_tokens": 0},
        "sampled_tokens": 60,
        "seconds": {"rollout": 3.0, "learn": 0.75, "sync": 0.25},
    }
