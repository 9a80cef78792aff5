"""Stages that make candidates: generate, register, check validity and loopholes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from factory.agent.grading import SharedGrade
from factory.core.assessment import TaskStatus
from factory.core.digest import Digest
from factory.core.errors import GeneratorError
from factory.core.task import Candidate, Task, TaskKind
from factory.flows.night import SHARDS_AT_ONCE, Night
from factory.report import yields
from filters.leaks import LeakProbe
from filters.loopholes import LoopholeConfig, probe_many
from filters.validity import Judged, ValidityConfig, check_validity_many
from generators.contract import Generator
from sandboxes.verification.grade import grade

if TYPE_CHECKING:
    from generators.repository.generator import RepositoryGenerator

REPOSITORY_WEIGHT = 8
"""A bug takes about as long to make and check as so many tasks of another kind."""


@dataclass(frozen=True)
class Shard:
    """Numbers `start` to `start + count - 1` of one kind's series."""

    kind: TaskKind
    start: int
    count: int
    project: str = ""
    """The project of a fleet whose own series it is; empty: the series of all."""

    @property
    def name(self) -> str:
        of = f" of {self.project}" if self.project else ""
        return f"{self.kind.value} {self.start}-{self.start + self.count - 1}{of}"


def shards(night: Night) -> list[Shard]:
    """The night's series cut into shards of about equal work, the slowest kind first."""
    counts, size = night.shop.settings.generate, night.shop.settings.nightly.shard
    wanted = {
        TaskKind.REPOSITORY: counts.repository,
        TaskKind.DATABASE: counts.database,
        TaskKind.TERMINAL: counts.terminal,
    }
    sizes = dict.fromkeys(wanted, size) | {TaskKind.REPOSITORY: max(1, size // REPOSITORY_WEIGHT)}
    return [
        Shard(kind, start, min(sizes[kind], count - start))
        for kind, count in wanted.items()
        for start in range(0, count, sizes[kind])
    ]


def look_at_sandboxes(night: Night) -> None:
    """Record what of the sandboxes' isolation and limits holds where this night runs, for whoever audits its evidence."""

    def work() -> dict[str, Any]:
        backend = night.shop.backend
        found = backend.capabilities()
        return {
            "backend": backend.name,
            "holds": [one.name for one in found if one.holds],
            "lacks": {one.name: one.detail for one in found if not one.holds},
        }

    night.once("sandboxes", work)


def fetch(night: Night) -> None:
    """Fetch and triage the projects that tasks are made of, so that no two shards do it at once."""

    def work() -> dict[str, Any]:
        shop = night.shop
        generator = shop.generators.get(TaskKind.REPOSITORY)
        if generator is None:
            return {}
        from generators.repository.generator import RepositoryGenerator

        assert isinstance(generator, RepositoryGenerator)
        with ThreadPoolExecutor(SHARDS_AT_ONCE) as pool:
            found = pool.map(lambda project: (project.release, generator.prepare(project, shop.blobs)), generator.projects)
            return {name: str(one) if isinstance(one, GeneratorError) else "serves" for name, one in found}

    night.once("fetch", work)


def make(night: Night, shard: Shard, generator: Generator | None = None) -> list[Digest]:
    """Generate and register one shard, and store what validity and loophole checks measured. Empty when a budget is used up.

    `generator`: the one of the shard's own series; None: the kind's.
    """

    def work() -> dict[str, Any]:
        shop = night.shop
        maker = generator or shop.generators[shard.kind]
        bugs = counting(maker) if shard.kind is TaskKind.REPOSITORY else None
        found = list((bugs or maker).generate(shop.blobs, seed=night.seed, start=shard.start, count=shard.count))
        registered = shop.registry.register_many(found, run=night.run.id)
        digests = list(dict.fromkeys(one.digest for one in registered))
        judged = check(night, [shop.registry.task(digest) for digest in digests])
        return {
            "asked": shard.count,
            "generated": len(found),
            "new": sum(one.created for one in registered),
            "not_judged": [one.fault for one in judged if one.evidence is None],
            "digests": digests,
            "fates": yields.rows(fates_of(bugs.fates, found, judged)) if bugs else [],
        }

    record = night.once(f"make {shard.name}", work)
    return [] if record is None else list(record["digests"])


def counting(generator: Generator) -> RepositoryGenerator:
    """A repository generator whose fates are those of one shard alone."""
    from generators.repository.generator import RepositoryGenerator

    assert isinstance(generator, RepositoryGenerator)
    return generator.counting()


def fates_of(told: Counter[yields.Fate], found: Sequence[Candidate], judged: Sequence[Judged]) -> Counter[yields.Fate]:
    """What became of every number of a shard: what the generator told, and for a candidate that a filter refuses the filter."""
    fates = Counter(told)
    refused = {
        one.task: yields.NOT_JUDGED if one.evidence is None else one.evidence.filter
        for one in reversed(judged)  # the first filter's word counts
        if one.evidence is None or not one.evidence.passed
    }
    for one in found:
        project, operator = (one.origin.source or "").partition("==")[0], one.origin.operator or ""
        if one.task.digest in refused and fates[project, operator, yields.VALID]:
            fates[project, operator, yields.VALID] -= 1
            fates[project, operator, refused[one.task.digest]] += 1
    return +fates


def checks(kind: TaskKind) -> frozenset[str]:
    """The filters that `check` asks about a valid task of a kind."""
    return frozenset({"validity", "loopholes", *(["leaks"] if kind is TaskKind.REPOSITORY else [])})


def judge_again(night: Night, digests: Sequence[Digest]) -> dict[str, Any]:
    """Check those of the candidates `digests` that an infrastructure fault left without evidence, at every start anew."""
    registry = night.shop.registry
    missing = []
    for digest in digests:
        said = {one.filter: one.passed for one in registry.evidence(digest)}
        task = registry.task(digest)
        if registry.status(digest) is TaskStatus.CANDIDATE and all(said.values()) and not checks(task.kind) <= set(said):
            missing.append(task)
    judged = [] if not missing or night.spent() else check(night, missing)
    kinds = {task.digest: task.kind.value for task in missing}
    return {
        "judged_again": len(missing),
        "not_judged": [{"kind": kinds[one.task], "fault": one.fault} for one in judged if one.evidence is None],
    }


def check(night: Night, tasks: Sequence[Task]) -> list[Judged]:
    """Validity of each task; of valid ones loophole probes, of bugs leak probes. Evidence is stored, faults are returned."""
    shop = night.shop
    workers = max(1, shop.settings.sandbox.workers // SHARDS_AT_ONCE)
    tools: dict[str, Any] = {"backend": shop.backend, "blobs": shop.blobs, "untouched": SharedGrade(grade)}
    judged = check_validity_many(tasks, config=ValidityConfig(workers=workers), **tools)
    valid = [task for task, one in zip(tasks, judged, strict=True) if one.evidence is not None and one.evidence.passed]
    judged += probe_many(valid, config=LoopholeConfig(workers=workers), **tools)
    broken = [task for task in valid if task.kind is TaskKind.REPOSITORY]
    judged += LeakProbe(backend=shop.backend, blobs=shop.blobs).probe_many(broken)
    found = [(one.task, one.evidence) for one in judged if one.evidence is not None]
    shop.registry.add_evidence_many(found, run=night.run.id)
    return judged
