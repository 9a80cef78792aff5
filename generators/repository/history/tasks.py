"""A task from two states of a project's source files: the agent has the first, the tests are those of the second."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from factory.core.blobs import BlobStore, put_json
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.task import EnvironmentSpec, Task, TaskKind
from generators.repository.candidates import dealt, verifier
from generators.repository.config import RepositoryConfig
from generators.repository.solution import restoring_files

if TYPE_CHECKING:
    from generators.repository.generator import Prepared

Texts = Mapping[str, str | None]
"""Files by path; None: there is none."""


@dataclass(frozen=True, kw_only=True)
class Halves:
    """Tests dealt out to the visible and the held-out verifier. A test that alone fails is in both."""

    shown_fail: tuple[str, ...]
    hidden_fail: tuple[str, ...]
    shown_keep: tuple[str, ...]
    hidden_keep: tuple[str, ...]

    @classmethod
    def deal(cls, fail: tuple[str, ...], keep: tuple[str, ...], rng: random.Random) -> Self:
        """FAIL_TO_PASS, at least one, and PASS_TO_PASS."""
        shown_fail, hidden_fail = dealt(fail, rng.random() < 0.5)
        shown_keep, hidden_keep = dealt(keep, rng.random() < 0.5)
        return cls(
            shown_fail=shown_fail, hidden_fail=hidden_fail or shown_fail, shown_keep=shown_keep, hidden_keep=hidden_keep
        )


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The two states."""

    before: FileTree
    """The whole project before the change."""
    prepared: Prepared
    """The project after it, with the tests that count."""
    broken: Texts
    """The files that the agent is to change, as it finds them."""
    fixed: Texts
    """The same files after the change."""

    def task(self, instruction: str, halves: Halves, config: RepositoryConfig, blobs: BlobStore) -> Task:
        """The task that asks for the way from one to the other; as many turns as its solution needs twice."""
        solution, prepared = restoring_files(self.broken, self.fixed), self.prepared
        return Task(
            kind=TaskKind.REPOSITORY,
            instruction=instruction,
            environment=EnvironmentSpec(
                image=config.image,
                files=self.environment_tree(blobs).save(blobs),
                mounts=(prepared.mount,),
                tools=("bash", "edit", "submit"),
                limits=replace(config.limits, turns=max(config.limits.turns, 2 * len(solution.actions))),
            ),
            verifier=verifier(prepared.checkout, prepared.profile, halves.shown_fail, halves.shown_keep, blobs),
            held_out=verifier(prepared.checkout, prepared.profile, halves.hidden_fail, halves.hidden_keep, blobs),
            solution=put_json(blobs, solution.manifest()),
        )

    def environment_tree(self, blobs: BlobStore) -> FileTree:
        """What the agent gets: no tests, the sources after the change but for those that it is to change, and what lies
        outside the source folders as it was before: a list of changes tells what was done."""
        checkout, before = self.prepared.checkout, self.before
        tree, project = checkout.environment_tree(), checkout.project
        outside = {path for path in {*tree, *before} if not project.is_test(path) and not _below(path, project.sources)}
        tree = tree.without(*outside, *self.broken).merged({path: before[path] for path in outside if path in before})
        written = {}
        for path, text in self.broken.items():
            if text is not None:
                data = text.encode()
                known = before.get(path) or checkout.tree.get(path)
                written[path] = Entry(EntryKind.FILE, blobs.put(data), len(data), known is not None and known.executable)
        return tree.merged(written)


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
