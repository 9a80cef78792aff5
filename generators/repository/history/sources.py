"""Where changes come from: the commits of a git repository, or consecutive releases of a project.

In a fleet file:

    [[history]]
    project = "parse"                          # a project of the fleet: its layout, lock and options
    releases = [{version = "1.20.0", sha256 = "..."}, {version = "1.20.1", sha256 = "..."}]

    [[history]]
    project = "shapes"
    git = "https://example.org/shapes.git"     # or a path; only the object store is read
    first = "v1.0"                             # the commits after this one; without it, all
    last = "main"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import git

from factory.core.blobs import BlobStore
from factory.core.errors import UserError
from factory.core.files import FileTree
from generators.repository.history.config import HistoryConfig
from generators.repository.projects import Checkout, Fleet, Project
from generators.repository.sources import archive_tree, fetch_sdist, git_tree, open_repository

COMMIT = "history_commit"
RELEASE = "history_release"
SUBJECT = 120
"""Most characters of a commit's first line that are kept."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A source distribution on the package index."""

    version: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class HistorySource:
    """One `[[history]]` entry. Either `releases`, two or more from old to new, or `git`."""

    project: Project
    releases: tuple[Release, ...] = ()
    git: str = ""
    """URL or path of a git repository."""
    first: str = ""
    """Commits after this revision; empty: all."""
    last: str = "HEAD"
    """The newest commit."""

    def __post_init__(self) -> None:
        if bool(self.releases) == bool(self.git):
            raise UserError(f"history of {self.project.name}", "source", "either releases or git")
        if len(self.releases) == 1:
            raise UserError(f"history of {self.project.name}.releases", self.releases[0].version, "two or more releases")


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a commit or a release did to a project."""

    source: HistorySource
    operator: str
    """`history_commit` or `history_release`."""
    before: str
    """Version, or full name of the parent commit."""
    after: str
    subject: str = ""
    """First line of the commit's message."""

    @property
    def name(self) -> str:
        return f"{self.source.project.name} {self.before[:12]}..{self.after[:12]}"

    @property
    def described(self) -> str:
        """Name and version before the change, for people."""
        return f"{self.source.project.name}=={self.before if self.operator == RELEASE else self.before[:12]}"


def load_history(path: Path | None, fleet: Fleet) -> tuple[HistorySource, ...]:
    """The `[[history]]` entries of a fleet file; None: of the one that comes with the package. Raises UserError."""
    text = path.read_text() if path else files("generators.repository").joinpath("projects.toml").read_text()
    found = []
    for row in tomllib.loads(text).get("history", []):
        name = str(row.get("project", ""))
        try:
            releases = tuple(Release(**release) for release in row.get("releases", ()))
            fields: dict[str, Any] = {**row, "project": fleet.named(name), "releases": releases}
            found.append(HistorySource(**fields))
            if found[-1].project.use != "tasks":
                raise UserError("history", name, "a project of use `tasks`")
        except TypeError as error:
            raise UserError("history", name or "?", f"the fields of a history entry ({error})") from None
    return tuple(found)


def changes(source: HistorySource, config: HistoryConfig, cache: Path) -> list[Change]:
    """The changes of an entry that may be tasks, oldest first. Raises UserError for a wrong repository or revision."""
    if source.releases:
        return [
            Change(source=source, operator=RELEASE, before=old.version, after=new.version)
            for old, new in pairwise(source.releases)
        ]
    return list(reversed(list(_commits(source, config, cache))))


def _commits(source: HistorySource, config: HistoryConfig, cache: Path) -> Iterator[Change]:
    """Commits with one parent that change source files, but not too many, newest first."""
    last = source.last
    try:
        with open_repository(source.git, last, cache) as repository:
            range_ = f"{source.first}..{last}" if source.first else last
            for commit in repository.iter_commits(range_, max_count=config.commits, no_merges=True):
                if len(commit.parents) == 1 and (change := _change(source, commit, config)) is not None:
                    yield change
    except (git.GitError, git.exc.ODBError, ValueError) as error:
        said = (str(error).strip().splitlines() or ["?"])[-1].strip()[:200]
        raise UserError(
            "history", f"{source.git} {source.first}..{last}", f"a repository with these revisions ({said})"
        ) from None


def _change(source: HistorySource, commit: git.Commit, config: HistoryConfig) -> Change | None:
    """What a commit with one parent did; None when it changed no source file, or too many."""
    [parent] = commit.parents
    paths = {path for one in parent.diff(commit) for path in (one.a_path, one.b_path) if path}
    sources = sum(map(source.project.is_source, paths))
    if not 0 < sources <= 2 * config.max_changed_files:  # a renamed file has two paths
        return None
    subject = str(commit.summary)[:SUBJECT]
    return Change(source=source, operator=COMMIT, before=parent.hexsha, after=commit.hexsha, subject=subject)


def load(change: Change, cache: Path, blobs: BlobStore) -> tuple[FileTree, Checkout]:
    """The project's files before the change, and the project after it. Raises GeneratorError or UserError."""
    before, after = (_tree(change, revision, cache, blobs) for revision in (change.before, change.after))
    bare = replace(change.source.project, sha256="", git="", folder=change.name, version=change.after)
    return before, Checkout(bare, after, change.after)


def _tree(change: Change, revision: str, cache: Path, blobs: BlobStore) -> FileTree:
    source = change.source
    if source.git:
        return git_tree(source.git, revision, cache, blobs)[0]
    hashes = {release.version: release.sha256 for release in source.releases}
    return archive_tree(fetch_sdist(source.project.name, revision, hashes[revision], cache), blobs)
