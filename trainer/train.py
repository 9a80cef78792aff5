"""Train a policy version on its frontier: the registry's tasks, a real engine, a sandbox back end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from factory.agent.clients.local import LocalClient, LocalConfig
from factory.agent.formats import load_format
from factory.agent.grading import LastingGrade
from factory.agent.rollout import RolloutRequest, rollout
from factory.core.assessment import TaskState, TaskStatus
from factory.core.digest import Digest
from factory.core.errors import UserError
from factory.core.policy import PolicyVersion
from factory.core.task import TaskKind
from factory.core.trajectory import Trajectory
from factory.records import read_record, write_record
from registry.store import Registry
from sandboxes.contract import Backend
from sandboxes.verification.grade import grade
from trainer.collect import Collected
from trainer.grpo import GrpoConfig, GrpoRun, Sink
from trainer.policies.storage import load_model, load_record, save_policy
from trainer.warmstart.machine import keep_freed_memory

TRAIN = "train"
"""The part of a split that is trained on."""


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """What a run ended with."""

    version: PolicyVersion
    folder: Path
    """Policy folder of the trained weights."""
    parent: PolicyVersion
    steps: int
    """Steps of the loop in all, resumed ones included."""
    reason: str
    """`steps`, `seconds` or `terminated`."""
    elapsed_s: float
    metrics: Path
    """JSON lines, one a step."""

    def as_json(self) -> dict[str, Any]:
        return {
            "policy": self.version.name,
            "weights": self.version.weights,
            "parent": self.parent.name,
            "folder": str(self.folder),
            "steps": self.steps,
            "reason": self.reason,
            "elapsed_s": self.elapsed_s,
            "metrics": str(self.metrics),
        }


def training_pool(
    registry: Registry, line: str, *, split: str | None = None, kinds: Sequence[TaskKind] = ()
) -> dict[Digest, tuple[int, int]]:
    """Successes and scored rollouts of each accepted task of part `train` that this line was assessed on.

    Tasks outside the frontier are in the pool too, since p moves; the curriculum hardly draws them. `kinds` limits
    the pool (empty: all), `split` names a split (None: the newest). Raises UserError when no task is on the frontier.
    """
    rows = registry.query(status=TaskStatus.ACCEPTED, line=line, split=split, part=TRAIN)
    rows = [row for row in rows if row.n and (not kinds or row.kind in kinds)]
    if not any(row.state is TaskState.FRONTIER for row in rows):
        raise UserError("tasks", f"{len(rows)} assessed", f"an accepted training task on the frontier of line {line}")
    return {row.digest: (row.k or 0, row.n or 0) for row in rows}


def train(
    config: GrpoConfig,
    *,
    registry: Registry,
    backend: Backend,
    policy_dir: Path,
    policies: Path,
    out: Path,
    engine: LocalConfig | None = None,
    split: str | None = None,
    kinds: Sequence[TaskKind] = (),
    run: str | None = None,
    store_trajectories: bool = True,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> TrainResult:
    """Train the policy of `policy_dir` and save the result below `policies`; continues what stands in `out`.

    The new version, its lineage, each step's metrics (as stage `train/<step>` of `run`, when given) and the
    trajectories go into the registry. Raises UserError (no frontier, another run's folder), StaleWeights and
    TrainingStopped.
    """
    record = load_record(policy_dir)
    evidence = run_pool(out, lambda: training_pool(registry, record.line, split=split, kinds=kinds))
    keep_freed_memory()
    model = load_model(policy_dir)
    settings = engine or LocalConfig()
    config = within_context(config, settings)
    client = LocalClient(policy_dir, record.version, settings)
    try:
        format = load_format(policy_dir)

        blobs, lasting = registry.blobs, LastingGrade(grade)

        def rollouts(requests: Sequence[RolloutRequest]) -> list[Trajectory]:
            return rollout(
                requests, client=client, format=format, backend=backend, blobs=blobs, config=config.rollout, grade=lasting
            )

        loop = GrpoRun(
            config,
            model=model,
            client=client,
            engine_dtype=settings.dtype,
            context=settings.max_context,
            rollouts=rollouts,
            tasks=lru_cache(maxsize=None)(registry.task),
            evidence=evidence,
            out=out,
            sink=_sink(registry, run) if store_trajectories else None,
            reference=load_model(policy_dir) if config.learner.loss.kl > 0 else None,
        )
        for task in evidence:
            if registry.status(task) is not TaskStatus.ACCEPTED:
                loop.curriculum.retire(task)
        reason = loop.run(_reporter(registry, run, report))
    finally:
        client.close()
    version, folder = save_policy(
        loop.learner.model,
        root=policies,
        line=record.line,
        step=loop.version.step,
        parent=record.weights,
        format=record.format,
        tokenizer_file=policy_dir / "tokenizer.json",
    )
    registry.add_policy(record.version, path=registered_path(policy_dir, policies), format=record.format)
    registry.add_policy(version, path=registered_path(folder, policies), format=record.format, parent=record.weights)
    return TrainResult(
        version=version,
        folder=folder,
        parent=record.version,
        steps=loop.step,
        reason=reason,
        elapsed_s=loop.progress.elapsed_s,
        metrics=loop.log.path,
    )


def within_context(config: GrpoConfig, engine: LocalConfig) -> GrpoConfig:
    """`config` with episodes no longer than the engine takes: it refuses a longer sequence, and the run would end with it."""
    return replace(config, rollout=replace(config.rollout, max_context=min(config.rollout.max_context, engine.max_context)))


def registered_path(folder: Path, policies: Path) -> str:
    """A policy folder as the registry names it: relative to the data folder, in which `policies` stands; whole elsewhere."""
    folder, data = folder.resolve(), policies.resolve().parent
    return str(folder.relative_to(data) if folder.is_relative_to(data) else folder)


def run_pool(out: Path, find: Callable[[], dict[Digest, tuple[int, int]]]) -> dict[Digest, tuple[int, int]]:
    """The pool with which the run in `out` began, found now when it begins.

    What is accepted or assessed later joins the next run, so that a night between a kill and its resumption stops nothing.
    """
    note = out / "pool.json"
    held = read_record(note)
    if held is None:
        held = find()
        write_record(note, held)
    return {task: (successes, rollouts) for task, (successes, rollouts) in held.items()}


def _sink(registry: Registry, run: str | None) -> Sink:
    """Quarantine what proved broken, and store the trajectories of a step once: a step that is done again after a kill may
    have been stored before it."""

    def store(step: int, collected: Collected) -> None:
        broken = [task for task in collected.invalid if registry.status(task) is TaskStatus.ACCEPTED]
        reasons = {task: f"training: {collected.invalid[task]}" for task in broken}
        registry.set_status_many([(task, TaskStatus.QUARANTINED, reasons[task]) for task in broken], run=run)
        if not collected.trajectories:
            return
        trajectories = collected.trajectories
        first = trajectories[0]
        known = registry.trajectories(run=run, purpose="train", task=first.task, policy=first.policies[-1])
        if not any(row.group == first.group for row in known):
            registry.add_trajectories(trajectories, purpose="train", run=run)

    return store


def _reporter(
    registry: Registry, run: str | None, report: Callable[[dict[str, Any]], None] | None
) -> Callable[[dict[str, Any]], None]:
    def tell(metrics: dict[str, Any]) -> None:
        if run is not None:
            registry.record_stage(run, f"train/{metrics['step']:06d}", metrics, seconds=sum(metrics["seconds"].values()))
        if report is not None:
            report(metrics)

    return tell
