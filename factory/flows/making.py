"""Stages that make candidates: generate, register, check validity and loopholes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from filters.loopholes import probe_many

from factory.core.digest import Digest
from factory.core.task import TaskKind
from factory.flows.night import Night
from filters.validity import check_validity_many


@dataclass(frozen=True)
class Shard:
    """Numbers `start` to `start + count - 1` of one kind's series."""

    kind: TaskKind
    start: int
    count: int

    @property
    def name(self) -> str:
        return f"{self.kind.value} {self.start}-{self.start + self.count - 1}"


def shards(night: Night) -> list[Shard]:
    """The night's series cut into shards, the slowest kind first."""
    counts, size = night.shop.settings.generate, night.shop.settings.nightly.shard
    wanted = {
        TaskKind.REPOSITORY: counts.repository,
        TaskKind.DATABASE: counts.database,
        TaskKind.TERMINAL: counts.terminal,
    }
    return [Shard(kind, start, min(size, count - start)) for kind, count in wanted.items() for start in range(0, count, size)]


def make(night: Night, shard: Shard) -> list[Digest]:
    """Generate and register one shard, and store what validity and loophole checks measured. Empty when a budget is used up."""

    def work() -> dict[str, Any]:
        shop = night.shop
        generator = shop.generators[shard.kind]
        found = list(generator.generate(shop.blobs, seed=night.seed, start=shard.start, count=shard.count))
        registered = shop.registry.register_many(found, run=night.run.id)
        digests = list(dict.fromkeys(one.digest for one in registered))
        tasks = [shop.registry.task(digest) for digest in digests]
        workers = shop.settings.sandbox.workers
        validity = check_validity_many(tasks, backend=shop.backend, blobs=shop.blobs, workers=workers)
        valid = [task for task, evidence in zip(tasks, validity, strict=True) if evidence.passed]
        loopholes = probe_many(valid, backend=shop.backend, blobs=shop.blobs, workers=workers)
        pairs = [
            *zip(digests, validity, strict=True),
            *((task.digest, one) for task, one in zip(valid, loopholes, strict=True)),
        ]
        shop.registry.add_evidence_many(pairs, run=night.run.id)
        return {
            "asked": shard.count,
            "generated": len(found),
            "new": sum(one.created for one in registered),
            "digests": digests,
        }

    record = night.once(f"make {shard.name}", work)
    return [] if record is None else list(record["digests"])
