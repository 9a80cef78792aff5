"""Training and evaluation as flows: the holdout before, GRPO on the frontier, the holdout after."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from factory.agent.clients.local import LocalConfig
from factory.agent.formats import load_format
from factory.core.assessment import TaskStatus
from factory.core.errors import NotFound, UserError
from factory.core.streams import stream_seed
from factory.core.task import Task
from factory.flows.assessing import store_once
from factory.flows.begun import begin_run
from factory.flows.policy_line import client_of, folder_of, rollout_config
from factory.flows.workshop import Workshop
from factory.records import read_record, write_record
from factory.settings import section
from filters.splits import COMPOSITIONS, FAMILIES
from registry.policies import PolicyRow
from registry.runs import RunState
from trainer.evaluate import Evaluation, EvaluationConfig, evaluate, paired_gain
from trainer.grpo import GrpoConfig
from trainer.train import train

HOLDOUT = (COMPOSITIONS, FAMILIES)
Report = Callable[[dict[str, Any]], None]


def start_of(shop: Workshop, reference: str | None) -> PolicyRow:
    """The version to begin from: the one named, else the line's latest. Raises UserError."""
    line = shop.settings.policy.line
    if reference is not None:
        try:
            return shop.registry.policy(reference)
        except NotFound:
            expected = "line@digits, a digest, at least 8 digits of one, or an alias of a policy version"
            raise UserError("--policy", reference, expected) from None
    latest = shop.registry.latest_policy(line)
    if latest is None:
        raise UserError("policy.line", line, "a line with a version: `factory nightly` or `factory warmstart` makes one")
    return latest


def holdout(shop: Workshop) -> list[tuple[Task, str]]:
    """Accepted tasks of the sealed holdout parts with their part. Raises UserError when there are none."""
    registry = shop.registry
    rows = [
        row for part in HOLDOUT for row in registry.query(status=TaskStatus.ACCEPTED, split=shop.settings.split.name, part=part)
    ]
    if not rows:
        raise UserError("split.name", shop.settings.split.name, "a split with accepted holdout tasks")
    return [(registry.task(row.digest), str(row.part)) for row in rows]


def evaluate_policy(shop: Workshop, policy: PolicyRow, *, run: str) -> Evaluation:
    """Evaluate `policy` on the holdout once per run: a stored result of the same run is read, not measured again."""
    stage = f"evaluate {policy.version.name}"
    held = shop.registry.stages(run).get(stage)
    if held is not None:
        return Evaluation.from_json(held.data)
    settings, started = shop.settings, time.monotonic()
    config = EvaluationConfig(samples=settings.evaluate.samples, rollout=rollout_config(shop, held_out=True))
    with client_of(shop, policy) as client:
        found, trajectories = evaluate(
            holdout(shop),
            client=client,
            format=load_format(folder_of(shop, policy)),
            backend=shop.backend,
            blobs=shop.blobs,
            config=config,
        )
    store_once(shop.registry, trajectories, purpose="evaluate", run=run)
    shop.registry.record_stage(run, stage, found.as_json(), seconds=time.monotonic() - started)
    return found


def run_training(shop: Workshop, *, name: str, begin: str | None, report: Report | None = None) -> dict[str, Any]:
    """Train run `name` and evaluate the holdout before and after. Started again it goes on where it stopped.

    Raises UserError for settings that do not fit, StaleWeights and TrainingStopped from the trainer.
    """
    settings = shop.settings
    config = section(GrpoConfig, settings.train, "train")
    config = replace(config, seed=stream_seed(config.seed, "train", name))  # runs of one line do not repeat each other's draws
    row = begin_run(shop.registry, settings, "train", name, option="--name")
    folder = (settings.data / "training" / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    start = _started(shop, folder, begin)
    before = evaluate_policy(shop, start, run=row.id)
    result = train(
        config,
        registry=shop.registry,
        backend=shop.backend,
        policy_dir=folder_of(shop, start).resolve(),
        policies=shop.policies.resolve(),
        out=folder,
        engine=engine(shop),
        split=settings.split.name,
        run=row.id,
        report=report,
    )
    after = evaluate_policy(shop, shop.registry.policy(result.version.weights), run=row.id)
    summary = {"run": row.id, "training": result.as_json(), "holdout": compare(before, after)}
    shop.registry.record_stage(row.id, "summary", summary, seconds=result.elapsed_s)
    shop.registry.finish_run(row.id, RunState.FINISHED)
    return summary


def engine(shop: Workshop) -> LocalConfig:
    """The engine in this process, from the settings."""
    policy = shop.settings.policy
    return LocalConfig(dtype=policy.dtype, kv_cache_gib=policy.kv_cache_gib, max_context=policy.max_context)


def compare(before: Evaluation, after: Evaluation) -> dict[str, Any]:
    """Pass rates before and after with 95 % intervals, part by part, and the paired gain."""
    parts: dict[str, Any] = {}
    for part in (*before.parts, None):
        first, last = before.rate(part), after.rate(part)
        parts[part or "all"] = {
            "tasks": sum(part in (None, one.part) for one in before.tasks),
            "before": asdict(first),
            "after": asdict(last),
            "paired_gain": asdict(paired_gain(before, after, part)),
            "intervals_overlap": first.high >= last.low,
        }
    return {"before": before.policy, "after": after.policy, "parts": parts}


def _started(shop: Workshop, folder: Path, begin: str | None) -> PolicyRow:
    """The version that this run began from, noted so that a resumed run begins from it too."""
    note = folder / "start.json"
    held = read_record(note)
    if held is not None:
        return shop.registry.policy(held["weights"])
    start = start_of(shop, begin)
    write_record(note, {"weights": start.version.weights, "policy": start.version.name})
    return start
