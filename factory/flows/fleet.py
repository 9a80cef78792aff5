"""Tasks from every project of a fleet: what each gives, and why another gives nothing.

Each project has a series of its own, that of a fleet of this project alone: a fleet can grow without changing what its
projects give. What is done is recorded part by part, so that a run which was killed goes on where it was.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from factory.core.digest import digest_of
from factory.core.errors import FactoryError, GeneratorError, UserError
from factory.core.task import TaskKind
from factory.flows.making import Shard, make
from factory.flows.night import SHARDS_AT_ONCE, Night, Progress
from factory.flows.workshop import Workshop
from factory.report import yields
from factory.report.records import TRIAGE
from factory.settings import Settings, section
from generators.repository.config import RepositoryConfig
from generators.repository.generator import RepositoryGenerator
from generators.repository.projects import Fleet, Project, load_fleet

PART = 25
"""Edits of one project that are made, checked and recorded together."""


def generate_fleet(
    settings: Settings, file: Path | None, *, seed: int, start: int, count: int, progress: Progress
) -> dict[str, Any]:
    """Triage all projects of a fleet and make numbers `start` to `start + count - 1` of the series of each.

    `file`: a fleet file or the name of a fleet that comes with the package; None: the settings' own fleet. A project that can
    not serve is refused with the reason and stops no other. The same arguments again resume the run: what was refused for good
    or made is not done again. Returns {run, fleet, projects, operators, all} with rows as `factory.report.yields` has them;
    seconds are wall time. Raises UserError for a wrong fleet.
    """
    if file is not None:
        settings = settings.model_copy(update={"repository": {**settings.repository, "fleet": str(file)}})
    config = section(RepositoryConfig, settings.repository, "repository")
    fleet, projects = _asked(config)
    name = str(config.fleet or "default")
    with Workshop.open(settings) as shop:
        digest = digest_of([{**asdict(one), "lock": fleet.locks[one.lock]} for one in projects])
        night = Night.occasion(shop, f"fleet/{name}/{digest[:12]}/{seed}/{start}+{count}", seed=seed, progress=progress)
        assert shop.backend  # opened before threads ask for it
        progress.stage("triage, generate and check", len(projects))

        def work(project: Project) -> bool:
            done = _project(night, project, start, count)
            progress.advance(project.release)
            return done

        with ThreadPoolExecutor(SHARDS_AT_ONCE) as pool:
            done = [*pool.map(work, projects)]
        if all(done):
            shop.registry.finish_run(night.run.id)
        return {"run": night.run.id, "fleet": name, **yields.summary(shop.registry.stages(night.run.id).values())}


def _asked(config: RepositoryConfig) -> tuple[Fleet, tuple[Project, ...]]:
    """The fleet, and those of its projects that the settings ask for. Raises UserError."""
    fleet = load_fleet(config.fleet)
    projects = tuple(fleet.named(name) for name in config.projects) or fleet.used_for("tasks")
    if not projects:
        raise UserError("fleet", str(config.fleet), "a fleet with projects for tasks")
    return fleet, projects


def _project(night: Night, project: Project, start: int, count: int) -> bool:
    """Triage one project and make its parts. False where something failed that may go well another time."""
    shop = night.shop
    config = replace(shop.repository, projects=(project.name,))
    generator = RepositoryGenerator(config, cache=shop.cache / "projects", backend=shop.backend)
    told = _triage(night, project, generator)
    if told["refused"]:
        return bool(told["for_good"])
    try:
        for first in range(start, start + count, PART):
            size = min(PART, start + count - first)
            make(night, Shard(TaskKind.REPOSITORY, first, size, project.name), generator)
    except FactoryError as error:  # the boundary of a project: what breaks on it breaks on it alone
        told |= {"refused": f"broke off: {error}", "for_good": False}
        _record(night, project, told, shop.registry.stages(night.run.id)[TRIAGE + project.name].seconds)
        return False
    return True


def _triage(night: Night, project: Project, generator: RepositoryGenerator) -> dict[str, Any]:
    """What triage says of a project: of an earlier start, unless it could not be asked then."""
    held = night.shop.registry.stages(night.run.id).get(TRIAGE + project.name)
    if held is not None and held.data["for_good"]:
        return {**held.data}
    started = time.monotonic()
    told: dict[str, Any] = {"release": project.release, "licence": project.licence, "refused": "", "for_good": True}
    try:
        found = generator.prepare(project, night.shop.blobs)
        if isinstance(found, GeneratorError):
            told |= {"refused": str(found)}
        else:
            told |= {"tests": len(found.profile.tests), "suite_ms": found.profile.suite_ms}
    except (FactoryError, OSError) as error:  # the boundary of a project: not fetched, not installed, or a wrong entry
        told |= {"refused": str(error), "for_good": False}
    _record(night, project, told, time.monotonic() - started)
    return told


def _record(night: Night, project: Project, told: dict[str, Any], seconds: float) -> None:
    night.shop.registry.record_stage(night.run.id, TRIAGE + project.name, told, seconds=seconds)
