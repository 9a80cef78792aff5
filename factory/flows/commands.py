"""What single commands do, each one function: the same stages as the nightly flow, without Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from factory.core.assessment import TaskStatus
from factory.core.digest import Digest
from factory.core.errors import UserError
from factory.core.task import TaskKind
from factory.flows import assessing, making, policy_line, splitting, training
from factory.flows.begun import begin_run
from factory.flows.night import Night, Progress
from factory.flows.workshop import Workshop
from factory.settings import Settings, section
from trainer.grpo import GrpoConfig


def generate(settings: Settings, kind: TaskKind, *, seed: int, start: int, count: int, progress: Progress) -> dict[str, Any]:
    """Make, register and check candidates of one kind. Raises UserError when the settings switch the kind off."""
    with Workshop.open(settings) as shop:
        if kind not in shop.generators:
            raise UserError(f"generate.{kind.value}", 0, "at least 1 for this kind")
        night = Night.occasion(shop, f"generate/{kind.value}/{seed}/{start}+{count}", seed=seed, progress=progress)
        size = settings.nightly.shard
        parts = [making.Shard(kind, begin, min(size, start + count - begin)) for begin in range(start, start + count, size)]
        progress.stage("generate and validate", len(parts))
        made: list[Digest] = []
        for part in parts:
            made += making.make(night, part)
            progress.advance()
        rows = [shop.registry.row(digest) for digest in made]
        valid = [digest for digest in made if all(one.passed for one in shop.registry.evidence(digest))]
        shop.registry.finish_run(night.run.id)
        return {"run": night.run.id, "candidates": len(made), "valid": len(valid), "names": [row.name for row in rows if row]}


def assess(settings: Settings, reference: str | None, *, limit: int | None, progress: Progress) -> dict[str, Any]:
    """Assess every open task that `reference` (default: the line's latest version) was not assessed on."""
    with Workshop.open(settings) as shop:
        policy = training.start_of(shop, reference)
        digests = [row.digest for row in _open_tasks(shop)]
        digests = [digest for digest in digests if not _assessed(shop, digest, policy.version.weights)][:limit]
        night = Night.occasion(shop, f"assess/{policy.version.name}", seed=0, progress=progress)
        size = max(1, assessing.EPISODES // settings.policy.samples)
        batches = [digests[begin : begin + size] for begin in range(0, len(digests), size)]
        progress.stage("assess", len(batches))
        if batches:
            with policy_line.client_of(shop, policy) as client:
                for some in batches:
                    assessing.assess(night, some, policy, client)
                    progress.advance()
        record = assessing.accept(night, digests, policy.version.line)
        shop.registry.finish_run(night.run.id)
        return {"run": night.run.id, "policy": policy.version.name, "assessed": len(digests), **record}


def warmstart(settings: Settings, *, progress: Progress) -> dict[str, Any]:
    """Give the line its first version; the holdout's keys are withheld from its demonstrations."""
    with Workshop.open(settings) as shop:
        held = splitting.withheld(shop, [row.digest for row in _open_tasks(shop)])
        progress.stage("warm start", 1)
        made = policy_line.ensure_policy(shop, seed=settings.generate.seed or 0, withheld=held, note=progress.note)
        progress.advance()
        return made


def train(settings: Settings, *, name: str, policy: str | None, progress: Progress) -> dict[str, Any]:
    """Train run `name`, with the holdout before and after."""
    steps = section(GrpoConfig, settings.train, "train").steps
    with Workshop.open(settings) as shop:
        training.start_of(shop, policy)  # a person's mistake is told before work begins
        progress.stage("train", steps)

        def report(metrics: dict[str, Any]) -> None:
            solved = metrics["solved"]
            progress.advance(f"step {metrics['step']}, solved {solved if solved is None else round(solved, 3)}")

        return training.run_training(shop, name=name, begin=policy, report=report)


def evaluate(settings: Settings, *, name: str, policy: str | None) -> dict[str, Any]:
    """Evaluate a version on the sealed holdout."""
    with Workshop.open(settings) as shop:
        version = training.start_of(shop, policy)
        run = begin_run(shop.registry, settings, "evaluate", name, option="--name")
        found = training.evaluate_policy(shop, version, run=run.id)
        shop.registry.finish_run(run.id)
        return {"run": run.id, **found.as_json()}


def _open_tasks(shop: Workshop) -> Sequence[Any]:
    return [row for row in shop.registry.query() if row.status in (TaskStatus.CANDIDATE, TaskStatus.ACCEPTED)]


def _assessed(shop: Workshop, digest: Digest, weights: Digest) -> bool:
    return any(one.policy == weights for one in shop.registry.assessments(digest))
