"""A row of another's data set as a candidate: its patches on the project's files, its tests as far as ours agree.

SWE-smith: the files of the row's commit are right, `patch` is the bug. SWE-bench: the files of `base_commit` are wrong, `patch`
makes them right, `test_patch` brings the tests. From there on it is the same: the tests of the right files are run on both
sides by this project's own validation, and a test is FAIL_TO_PASS or PASS_TO_PASS when the row and the runs both say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from factory.core.blobs import BlobStore
from factory.core.digest import Json
from factory.core.errors import GeneratorError
from factory.core.files import FileTree
from factory.core.streams import stream
from factory.core.task import Candidate, Origin, SplitKeys, repository_key
from generators.repository.config import RepositoryConfig
from generators.repository.exchange.checkouts import Checkouts, repository_of
from generators.repository.generator import Prepared, RepositoryGenerator
from generators.repository.history.config import HistoryConfig
from generators.repository.history.pieces import file_changes, patch
from generators.repository.history.splitting import judged_whole, twice
from generators.repository.history.tasks import Halves, Sides
from generators.repository.patches import applied
from generators.repository.projects import Checkout, Project
from generators.repository.runs import Run, RunResult

VERSION = "1"
"""Of the import: part of the origin of every task made of a row."""
SHOWN = 20
"""Most names of tests in one list of a report."""


class RowLike(Protocol):
    """What is asked of a row."""

    @property
    def format(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def repo(self) -> str: ...
    @property
    def base_commit(self) -> str: ...
    @property
    def patch(self) -> str: ...
    @property
    def test_patch(self) -> str: ...
    @property
    def problem_statement(self) -> str: ...
    @property
    def fail_to_pass(self) -> tuple[str, ...]: ...
    @property
    def pass_to_pass(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """Where a row and our runs say different things of tests. The first of each list are named."""

    fail_to_pass: tuple[str, ...]
    """In the row's list, but not seen to fail before and pass after."""
    pass_to_pass: tuple[str, ...]
    """In the row's list, but not seen to pass on both sides."""
    further: tuple[str, ...]
    """Seen to fail before and pass after, and in neither list of the row."""

    def __bool__(self) -> bool:
        return bool(self.fail_to_pass or self.pass_to_pass or self.further)

    def as_json(self) -> dict[str, Any]:
        fields = {name: list(getattr(self, name)) for name in self.__dataclass_fields__}
        return {name: {"count": len(names), "first": names[:SHOWN]} for name, names in fields.items()}


@dataclass(frozen=True)
class Imported:
    """What a row became."""

    candidate: Candidate
    disagreement: Disagreement


class RowImporter:
    """Builds candidates of rows with a generator's machinery: its fleet, settings, cache and back end."""

    def __init__(self, generator: RepositoryGenerator, checkouts: Checkouts) -> None:
        self._generator, self._checkouts = generator, checkouts
        self._prepared: dict[tuple[str, str], Prepared | GeneratorError] = {}

    def build(self, row: RowLike, values: Mapping[str, Any], blobs: BlobStore) -> Imported:
        """The candidate of a row; `values` is the row as JSON, which its origin keeps.

        Raises GeneratorError or UserError, one line, when there is no source, a patch does not fit, the project can not serve,
        or no test of the row's shows the bug.
        """
        before, after = self._sides(row, blobs)
        files = file_changes(after.project, before, after.tree, blobs)
        if not files:
            raise GeneratorError("the patch changes no source file")
        prepared = self._ready(after, blobs)
        broken = {path: one.before for path, one in files.items()}
        fixed = {path: one.after for path, one in files.items()}
        [result] = twice([broken], prepared.profile, _runner(prepared))
        judged = judged_whole(prepared.profile, result, HistoryConfig())
        if judged.fault:
            raise GeneratorError(f"the tests do not tell the two sides apart: {judged.fault}")
        tests = agreed(row, judged.fail, judged.keep)
        if not tests.fail:
            first = row.fail_to_pass[0]
            raise GeneratorError(f"no test of FAIL_TO_PASS fails before and passes after, {first[:120]!r} among them")
        sides = Sides(before=before, prepared=prepared, broken=broken, fixed=fixed)
        return Imported(_candidate(row, values, sides, tests, self._generator.config, blobs), tests.rest)

    def _sides(self, row: RowLike, blobs: BlobStore) -> tuple[FileTree, Checkout]:
        """The whole project before the fix, and after it with the row's tests."""
        found = self._checkouts.checkout(row.repo, row.base_commit, blobs)
        if row.format == "swesmith":
            before, after = applied(found.tree, row.patch, blobs), found.tree
        else:
            before, after = found.tree, applied(applied(found.tree, row.patch, blobs), row.test_patch, blobs)
        return before, Checkout(with_tests_of(row, found.project, after), after, found.revision)

    def _ready(self, after: Checkout, blobs: BlobStore) -> Prepared:
        key = after.digest, after.project.lock
        if key not in self._prepared:
            self._prepared[key] = self._generator.prepare_checkout(after, blobs)
        found = self._prepared[key]
        if isinstance(found, GeneratorError):
            raise found
        return found


def with_tests_of(row: RowLike, project: Project, tree: FileTree) -> Project:
    """The project, its tests grown by the files of the row's that it does not count among them."""
    named = dict.fromkeys(name.partition("::")[0] for name in (*row.fail_to_pass, *row.pass_to_pass))
    further = tuple(path for path in named if path in tree and not project.is_test(path) and not project.is_source(path))
    return replace(project, tests=(*project.tests, *further)) if further else project


@dataclass(frozen=True)
class Agreed:
    """Tests of which the row and our runs say the same, in our order, and the rest."""

    fail: tuple[str, ...]
    keep: tuple[str, ...]
    rest: Disagreement


def agreed(row: RowLike, fail: tuple[str, ...], keep: tuple[str, ...]) -> Agreed:
    """Compare a row's lists with what our runs saw fail and keep passing."""
    wanted_fail, wanted_keep = frozenset(row.fail_to_pass), frozenset(row.pass_to_pass)
    seen_fail, seen_keep = frozenset(fail), frozenset(keep)
    rest = Disagreement(
        fail_to_pass=tuple(name for name in row.fail_to_pass if name not in seen_fail),
        pass_to_pass=tuple(name for name in row.pass_to_pass if name not in seen_keep),
        further=tuple(name for name in fail if name not in wanted_fail and name not in wanted_keep),
    )
    return Agreed(tuple(filter(wanted_fail.__contains__, fail)), tuple(filter(wanted_keep.__contains__, keep)), rest)


def _candidate(
    row: RowLike, values: Mapping[str, Any], sides: Sides, tests: Agreed, config: RepositoryConfig, blobs: BlobStore
) -> Candidate:
    checkout = sides.prepared.checkout
    project, repository = checkout.project, repository_of(row.repo)
    halves = Halves.deal(tests.fail, tests.keep, stream(0, "imported row", row.format, row.instance_id))
    parameters: dict[str, Json] = {
        "format": row.format,
        "row": json.dumps(values),
        "instance_id": row.instance_id,
        "revision": checkout.revision,
        "licence": project.licence,
        "fail_to_pass": len(tests.fail),
        "pass_to_pass": len(tests.keep),
        "single_test": len(tests.fail) == 1,
    }
    # A fork and a project of the same name in a fleet are of one family, whoever owns them.
    keys = (repository_key(repository.name), repository_key(repository.short), project.key)
    return Candidate(
        task=sides.task(row.problem_statement, halves, config, blobs),
        origin=Origin(
            generator="import",
            generator_version=VERSION,
            seed=0,
            operator=row.format,
            source=f"{repository.name}@{checkout.revision}",
            parameters=parameters,
        ),
        name=f"repository/{project.name}/{row.format}/{row.instance_id}",
        families=(row.format,),
        keys=SplitKeys(keys=tuple(dict.fromkeys(keys))),
        text=patch(sides.broken, sides.fixed),
    )


def _runner(prepared: Prepared) -> Callable[[list[Run]], list[RunResult]]:
    return lambda runs: prepared.suite.run(runs, prepared.profile.limits(), 1)
