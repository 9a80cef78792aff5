"""The repository generator: real projects, broken one edit at a time, validated by their own tests in a sandbox."""

from __future__ import annotations

import copy
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from factory.core.blobs import BlobStore
from factory.core.errors import GeneratorError
from factory.core.streams import stream
from factory.core.task import Candidate, Mount
from generators.repository.candidates import VERSION, Draft, candidate, judge
from generators.repository.config import RepositoryConfig
from generators.repository.dependencies import dependency_mount
from generators.repository.projects import Checkout, Project, check_out, load_fleet
from generators.repository.runs import Run, Suite
from generators.repository.sites import ProjectSites
from generators.repository.triage import Profile, cached_triage
from sandboxes.contract import Backend

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """A project that passed triage."""

    checkout: Checkout
    mount: Mount
    suite: Suite
    profile: Profile
    sources: dict[str, str]
    """Text of the graded files by path; files that are no UTF-8 are left alone."""
    tests: dict[str, str]
    """Text of the test files by path."""


class RepositoryGenerator:
    """Candidates from a fleet of projects.

    Number i of a seed's series is edit i // n of project i % n of the n projects, shuffled; edits are shuffled with the
    operators taking turns. A number gives no candidate when its project is refused, its edit survives the tests, hangs,
    breaks the import, or can not be described without giving the fix away.
    """

    name = "repository"
    version = VERSION

    def __init__(self, config: RepositoryConfig | None = None, *, cache: Path, backend: Backend) -> None:
        """`cache` keeps archives, clones, dependencies and triage; project code runs in sandboxes of `backend` alone."""
        self.config = config or RepositoryConfig()
        self.fleet = load_fleet(self.config.fleet)
        names = self.config.projects or tuple(project.name for project in self.fleet.used_for("tasks"))
        self.projects = tuple(self.fleet.named(name) for name in names)
        self.fates: Counter[tuple[str, str, str]] = Counter()
        """(project, operator, fate) of every number asked for; the fate of a candidate is `valid`."""
        self._cache, self._backend = cache, backend
        self._lock = threading.Lock()
        self._prepared: dict[str, Prepared | GeneratorError] = {}
        self._sites: dict[tuple[str, int], ProjectSites] = {}

    def counting(self) -> Self:
        """The same generator with what it has prepared so far, and with `fates` of its own."""
        one = copy.copy(self)
        one.fates = Counter()
        return one

    def generate(self, blobs: BlobStore, *, seed: int, start: int, count: int) -> Iterator[Candidate]:
        """Candidates `start` to `start + count - 1` of the series of `seed`, in the order of their numbers.

        Raises GeneratorError when a project can not be fetched, its dependencies not installed, or a sandbox's batch is lost;
        UserError for a wrong project.
        """
        order = list(self.projects)
        stream(seed, "repository projects").shuffle(order)
        numbers: dict[Project, list[int]] = {}
        for number in range(start, start + count):
            numbers.setdefault(order[number % len(order)], []).append(number)
        with ThreadPoolExecutor(self.config.workers) as pool:
            batches = pool.map(lambda item: self._batch(item[0], item[1], blobs, seed, order), numbers.items())
            found = [pair for batch in batches for pair in batch]
        for _, made in sorted(found, key=lambda pair: pair[0]):
            yield made

    def _batch(
        self, project: Project, numbers: list[int], blobs: BlobStore, seed: int, order: list[Project]
    ) -> list[tuple[int, Candidate]]:
        """The candidates of one project among `numbers`."""
        prepared = self.prepare(project, blobs)
        if isinstance(prepared, GeneratorError):
            logger.warning("%s", prepared)
            self._tell(project, "", "refused", len(numbers))
            return []
        drafts = self._drafts(prepared, numbers, seed, len(order))
        stable = tuple(prepared.profile.tests)
        runs = [Run(key=str(draft.number), file=draft.edit.path, text=draft.broken, confirm=stable) for draft in drafts]
        workers = max(1, self.config.workers // len(order))  # projects are worked on side by side already
        results = prepared.suite.run(runs, prepared.profile.limits(), workers) if runs else []
        made = []
        for draft, result in zip(drafts, results, strict=True):
            judged = judge(prepared.profile, result)
            one = None if judged.fault else candidate(draft, judged, result, self.config, blobs)
            self._tell(project, draft.edit.operator, judged.fault or ("valid" if one else "not told apart"), 1)
            if one is not None:
                made.append((draft.number, one))
        logger.info("%s: %d of %d edits make tasks", project.release, len(made), len(drafts))
        return made

    def _drafts(self, prepared: Prepared, numbers: list[int], seed: int, stride: int) -> list[Draft]:
        project = prepared.checkout.project
        drafts = []
        for number in numbers:
            edit = self._project_sites(prepared, seed).edit(number // stride)
            if edit is None or (self.config.one_line and not edit.one_line):
                self._tell(project, edit.operator if edit else "", "not one line" if edit else "no more sites", 1)
                continue
            drafts.append(
                Draft(
                    seed=seed,
                    number=number,
                    checkout=prepared.checkout,
                    profile=prepared.profile,
                    edit=edit,
                    original=prepared.sources[edit.path],
                    tests=prepared.tests,
                    mount=prepared.mount,
                )
            )
        return drafts

    def _project_sites(self, prepared: Prepared, seed: int) -> ProjectSites:
        key = prepared.checkout.project.name, seed
        if key not in self._sites:
            self._sites[key] = ProjectSites(prepared.sources, self.config.operators, seed, key[0])
        return self._sites[key]

    def prepare(self, project: Project, blobs: BlobStore) -> Prepared | GeneratorError:
        """Fetch, install and triage a project; the refusal when it can not serve. Remembered for the generator's life."""
        if project.name not in self._prepared:
            checkout = check_out(project, self._cache, blobs)
            with self._lock:
                lock = self.fleet.locks[project.lock]
                mount = dependency_mount(lock, self._cache, self._backend, self.config.image, blobs)
            suite = Suite(checkout, (mount,), self._backend, blobs, self.config.image)
            content = f"{checkout.digest} {mount.tree} {self.config.image}"
            try:
                profile = cached_triage(suite, project.release, content, self.config.triage, self._cache)
            except GeneratorError as refusal:
                self._prepared[project.name] = refusal
                return refusal
            sources = _texts(checkout, checkout.source_files(), blobs)
            tests = _texts(checkout, [path for path in checkout.tree if project.is_test(path)], blobs)
            self._prepared[project.name] = Prepared(checkout, mount, suite, profile, sources, tests)
        return self._prepared[project.name]

    def _tell(self, project: Project, operator: str, fate: str, count: int) -> None:
        with self._lock:
            self.fates[project.name, operator, fate] += count


def _texts(checkout: Checkout, paths: list[str], blobs: BlobStore) -> dict[str, str]:
    texts = {}
    for path in paths:
        try:
            texts[path] = checkout.tree.read(blobs, path).decode()
        except UnicodeDecodeError:
            continue
    return texts
