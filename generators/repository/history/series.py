"""The series of history tasks: which change a number is, and the candidates that it gives."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from factory.core.blobs import BlobStore
from factory.core.errors import GeneratorError, UserError
from factory.core.files import FileTree
from factory.core.streams import stream
from factory.core.task import Candidate
from generators.repository.config import RepositoryConfig
from generators.repository.history.candidates import Origins, candidate
from generators.repository.history.pieces import FileChange, changed_count, file_changes
from generators.repository.history.sources import Change, HistorySource, changes, load
from generators.repository.history.splitting import Split, split
from generators.repository.history.written import Asked, Complete, written_tests
from generators.repository.projects import Checkout
from generators.repository.runs import Run, RunResult, Suite
from generators.repository.triage import Profile
from sandboxes.contract import Backend

if TYPE_CHECKING:
    from generators.repository.generator import Prepared

logger = logging.getLogger(__name__)

Prepare = Callable[[Checkout, BlobStore], "Prepared | GeneratorError"]


@dataclass(frozen=True)
class Made:
    """What one number gave."""

    project: str
    operator: str
    candidates: tuple[Candidate, ...]
    fates: Counter[str]
    """One for each part of the change; of a candidate `valid`."""


class HistorySeries:
    """Candidates from the changes of the fleet's `[[history]]` entries.

    Change j of a seed is change j // m of entry j % m of the m entries, both shuffled. Everything is judged with the
    tests after the change. A change with several parts that have nothing to do with each other gives several candidates.
    """

    def __init__(
        self,
        sources: tuple[HistorySource, ...],
        config: RepositoryConfig,
        *,
        cache: Path,
        backend: Backend,
        prepare: Prepare,
        complete: Complete | None = None,
    ) -> None:
        """Raises UserError when the settings ask for history tasks but there is no entry, or for written tests without
        `complete`."""
        if config.history.percent and not sources:
            raise UserError("repository.history.percent", config.history.percent, "0, or a fleet with [[history]] entries")
        if config.history.written_tests and complete is None:
            raise UserError("repository.history.written_tests", config.history.written_tests, "0 where there is no endpoint")
        self.sources, self.config = sources, config
        self._cache, self._backend = cache, backend
        self._prepare, self._complete = prepare, complete
        self._orders: dict[tuple[int, int], list[Change]] = {}
        self._lock = threading.Lock()

    def change(self, seed: int, index: int) -> Change | None:
        """Change `index` of a seed's order, from 0; None past the end of its entry. Raises UserError for a wrong entry."""
        order = list(range(len(self.sources)))
        stream(seed, "history entries").shuffle(order)
        entry = order[index % len(order)]
        with self._lock:
            if (seed, entry) not in self._orders:
                found = changes(self.sources[entry], self.config.history, self._cache)
                stream(seed, "history changes", self.sources[entry].project.name, entry).shuffle(found)
                self._orders[seed, entry] = found
        return next(iter(self._orders[seed, entry][index // len(order) :]), None)

    def make(self, blobs: BlobStore, *, seed: int, number: int) -> Made:
        """The candidates of one number of a series that is a change. Raises GeneratorError when its files cannot be had."""
        change = self.change(seed, self.config.history.index(number))
        if change is None:
            return Made("", "history", (), Counter({"no more changes": 1}))
        before, checkout = load(change, self._cache, blobs)
        try:
            files = file_changes(checkout.project, before, checkout.tree, blobs)
        except GeneratorError as error:
            logger.info("%s: %s", change.name, error)
            return _none(change, "no text")
        if fate := self._bounded(files, checkout):
            return _none(change, fate)
        prepared = self._prepare(checkout, blobs)
        if isinstance(prepared, GeneratorError):
            logger.info("%s", prepared)
            return _none(change, "refused")
        judged, found = self._split(change, files, prepared, blobs, seed)
        written = min(judged.tests.keys() - prepared.tests.keys(), default="")
        origins = Origins(seed=seed, number=number, change=change, written=written)
        fates, made = Counter(found.fates), []
        for place, part in enumerate(found.parts):
            one = candidate(origins, place, part, before, judged, self.config, blobs)
            fates["not told apart" if one is None else "valid"] += 1
            made += [] if one is None else [one]
        logger.info("%s: %d parts, %s", change.name, len(found.parts), dict(fates))
        return Made(change.source.project.name, change.operator, tuple(made), fates)

    def _bounded(self, files: dict[str, FileChange], checkout: Checkout) -> str:
        """Why a change is left alone before anything is run; empty when it is not."""
        config = self.config.history
        if not files:
            return "no source changed"
        if not checkout.source_files():
            return "no source left"
        before, after = ({path: getattr(one, side) for path, one in files.items()} for side in ("before", "after"))
        too_many = len(files) > config.max_changed_files or changed_count(before, after) > config.max_changed_lines
        return "too big" if too_many else ""

    def _split(
        self, change: Change, files: dict[str, FileChange], prepared: Prepared, blobs: BlobStore, seed: int
    ) -> tuple[Prepared, Split]:
        """The parts of a change; of one that no test tells, by tests that are written where the settings ask for them."""
        config = self.config.history
        found = split(files, prepared.profile, config, self._runner(prepared.suite, prepared.profile))
        if found.fates != ("survived",) or not config.written_tests:
            return prepared, found
        assert self._complete is not None  # the constructor refuses such settings
        broken = {path: one.before for path, one in files.items()}
        example = min((path for path in prepared.tests if path.endswith(".py")), default="")
        asked = Asked(
            project=change.source.project.name,
            broken=broken,
            fixed={path: one.after for path, one in files.items()},
            folder=_test_folder(prepared.checkout),
            example=prepared.tests.get(example, ""),
        )

        def run(path: str, text: str, runs: list[Run]) -> list[RunResult]:
            return self._runner(self._suite(with_test(prepared, path, text, blobs), blobs), prepared.profile)(runs)

        kept = written_tests(asked, self._complete, run, seed=seed, most=config.written_tests, repeats=config.repeats)
        if kept is None:
            return prepared, found
        more = with_test(prepared, kept.path, kept.text, blobs)
        profile = replace(prepared.profile, tests={**prepared.profile.tests, **kept.tests})
        more = replace(more, profile=profile, suite=self._suite(more, blobs))
        return more, split(files, profile, config, self._runner(more.suite, profile))

    def _suite(self, prepared: Prepared, blobs: BlobStore) -> Suite:
        return Suite(prepared.checkout, (prepared.mount,), self._backend, blobs, self.config.image)

    def _runner(self, suite: Suite, profile: Profile) -> Callable[[list[Run]], list[RunResult]]:
        return lambda runs: suite.run(runs, profile.limits(), 1)  # numbers are worked on side by side already


def with_test(prepared: Prepared, path: str, text: str, blobs: BlobStore) -> Prepared:
    """The project with one more test file; its suite is still the one without."""
    checkout = prepared.checkout
    project = replace(checkout.project, tests=tuple(dict.fromkeys((*checkout.project.tests, *_named(checkout, path)))))
    tree = checkout.tree.merged(FileTree.of(blobs, {path: text}))
    return replace(prepared, checkout=Checkout(project, tree, checkout.revision), tests={**prepared.tests, path: text})


def _named(checkout: Checkout, path: str) -> tuple[str, ...]:
    """`path` where no test folder of the project holds it."""
    return () if checkout.project.is_test(path) else (path,)


def _test_folder(checkout: Checkout) -> str:
    """The folder for one more test file: the first of the project's that has tests, or that beside its first test file."""
    first = checkout.project.tests[0]
    folder = first if not first.endswith(".py") else str(PurePosixPath(first).parent)
    return "" if folder == "." else folder


def _none(change: Change, fate: str) -> Made:
    return Made(change.source.project.name, change.operator, (), Counter({fate: 1}))
