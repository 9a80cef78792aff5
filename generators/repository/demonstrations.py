"""Demonstrations for the warm start: one-line edits of projects that never become tasks. Nothing is run for them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from factory.core.action import Action
from factory.core.blobs import MemoryBlobs
from factory.core.demonstration import Demonstration
from factory.core.errors import UserError
from factory.core.streams import stream
from generators.repository import gates
from generators.repository.config import RepositoryConfig
from generators.repository.instruction import instruction
from generators.repository.projects import Project, check_out, load_fleet
from generators.repository.sites import ProjectSites
from generators.repository.solution import changed_lines, restoring

logger = logging.getLogger(__name__)

EDITED = ""
"""What the `edit` tool shows when it did what it was asked."""


class RepositoryDemonstrator:
    """Instruction, one `edit` and `submit`, from the fleet's projects for demonstrations."""

    def __init__(self, config: RepositoryConfig | None = None, *, cache: Path, withheld: frozenset[str] = frozenset()) -> None:
        """`withheld` are split keys whose projects are not used. Raises UserError when no project is left."""
        self.config = config or RepositoryConfig()
        self._cache = cache
        tasks = {*self.config.projects, *self.config.apart}
        everyone = load_fleet(self.config.fleet).used_for("demonstrations")
        self.projects = tuple(project for project in everyone if project.key not in withheld and project.name not in tasks)
        if not self.projects:
            raise UserError("repository.fleet", str(self.config.fleet), "a fleet with projects of use `demonstrations`")
        self._sources: dict[str, dict[str, str]] = {}

    def demonstrate(self, *, seed: int, count: int) -> Iterator[tuple[str, Demonstration, tuple[str, ...]]]:
        """At most `count` demonstrations: fewer when the projects offer fewer edits of one line. Raises GeneratorError when a
        project can not be fetched."""
        order = list(self.projects)
        stream(seed, "demonstration projects").shuffle(order)
        found = {project.name: self._of_project(project, seed) for project in order}
        given = 0
        while found and given < count:
            for name in list(found):
                one = next(found[name], None)
                if one is None:
                    del found[name]
                    continue
                yield one
                given += 1
                if given == count:
                    return

    def _of_project(self, project: Project, seed: int) -> Iterator[tuple[str, Demonstration, tuple[str, ...]]]:
        texts = self._texts(project)
        sites = ProjectSites(texts, self.config.operators, seed, project.name)
        choices = tuple(name for name in self.config.explicitness if name != "symptom") or ("function",)
        number = 0
        while (edit := sites.edit(number)) is not None:
            number += 1
            if not edit.one_line:
                continue
            original = texts[edit.path]
            broken = edit.applied(original)
            explicitness = stream(seed, "demonstration", project.name, number).choice(choices)
            text = instruction(
                project.release,
                edit,
                broken,
                explicitness=explicitness,
                failing=0,
                shown=None,
                excerpt_lines=self.config.excerpt_lines,
                seed=seed,
            )
            wrong, right = changed_lines(broken, original)
            secret = gates.secret_of(wrong, right, [broken], "")
            demonstration = restoring(edit.path, broken, original)
            if not gates.leak(text, secret) and [action.tool for action in demonstration.actions] == ["edit", "submit"]:
                yield text, demonstration, _observations(demonstration.actions)

    def _texts(self, project: Project) -> dict[str, str]:
        if project.name not in self._sources:
            blobs = MemoryBlobs()
            checkout = check_out(project, self._cache, blobs)
            self._sources[project.name] = {
                path: checkout.tree.read(blobs, path).decode(errors="surrogateescape") for path in checkout.source_files()
            }
        return self._sources[project.name]


def _observations(actions: tuple[Action, ...]) -> tuple[str, ...]:
    return (EDITED,) * (len(actions) - 1)
