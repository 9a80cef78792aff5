"""The source tree that a row of another's data set speaks of, and how its project is laid out.

A row names a repository and has patches, never the files: those come from where the person says (a git repository, a
folder, a source distribution's archive), or from the fleet's project of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from factory.core.blobs import BlobStore
from factory.core.errors import GeneratorError, UserError
from factory.core.files import FileTree
from factory.core.task import repository_key
from generators.repository.projects import Checkout, Fleet, Project, check_out
from generators.repository.sources import archive_tree, folder_tree, git_tree

_MIRROR = re.compile(r"(?:swesmith|swebench)/", re.IGNORECASE)
_COMMIT = re.compile(r"\.([0-9a-f]{7,40})$")
_NO_PACKAGE = frozenset({"tests", "test", "testing", "docs", "doc", "examples", "example", "benchmarks", "scripts", "tools"})
UNKNOWN_LICENCE = "NOASSERTION"
"""SPDX's word for a licence that nobody looked up."""


@dataclass(frozen=True)
class Repository:
    """What the `repo` of a row means."""

    name: str
    """Owner and name, or the name alone."""
    commit: str
    """Part of a commit's name that stands in the row's `repo`; empty where there is none."""

    @property
    def short(self) -> str:
        """The name without owners."""
        return self.name.rpartition("/")[2]


def repository_of(repo: str) -> Repository:
    """Read a `repo`: plain (`owner/name`), or a mirror's (`swesmith/owner__name.1a2b3c4d`). Raises UserError for no name."""
    bare = _MIRROR.sub("", repo.strip())
    commit = _COMMIT.search(bare)
    name = _COMMIT.sub("", bare).replace("__", "/")
    repository_key(name)  # a name without a letter or digit is none
    return Repository(name, commit.group(1) if commit else "")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a person says that the files are."""

    source: str = ""
    """URL or path of a git repository, a folder, or the archive of a source distribution; empty: the fleet's project."""
    revision: str = ""
    """Of a git repository; empty: what the row says, else HEAD."""
    project: str = ""
    """Name of the fleet's project whose layout it has; empty: that of the row's name, else what the files look like."""


class Checkouts:
    """Source trees by place and revision, each read once."""

    def __init__(self, place: Place, fleet: Fleet, cache: Path) -> None:
        """Raises UserError for a project that the fleet does not have."""
        self._place, self._fleet, self._cache = place, fleet, cache
        self._named = fleet.named(place.project) if place.project else None
        self._trees: dict[str, tuple[FileTree, str]] = {}

    def checkout(self, repo: str, commit: str, blobs: BlobStore) -> Checkout:
        """The files of a repository at a commit (any revision, empty where the row says none), and their layout.

        Raises GeneratorError or UserError when there is no source, or it does not have that commit.
        """
        repository = repository_of(repo)
        project = self._named or self._known(repository)
        if not self._place.source:
            if project is None:
                raise GeneratorError(f"no source: the fleet has no project {repository.short!r}")
            return check_out(project, self._cache, blobs)
        tree, revision = self._tree(self._place.revision or commit or repository.commit or "HEAD", blobs)
        return Checkout(laid_out(repository, project, tree, revision), tree, revision)

    def _known(self, repository: Repository) -> Project | None:
        key = repository_key(repository.short)
        return next((one for one in self._fleet.projects if one.key == key and one.use == "tasks"), None)

    def _tree(self, revision: str, blobs: BlobStore) -> tuple[FileTree, str]:
        if revision not in self._trees:
            self._trees[revision] = self._read(revision, blobs)
        return self._trees[revision]

    def _read(self, revision: str, blobs: BlobStore) -> tuple[FileTree, str]:
        source = self._place.source
        path = Path(source)
        if path.is_file():
            return archive_tree(path, blobs), path.name.removesuffix(".gz").removesuffix(".tar")
        if path.is_dir() and not (path / ".git").exists() and not (path / "objects").is_dir():
            return folder_tree(path, blobs), path.name
        return git_tree(source, revision, self._cache, blobs)


def laid_out(repository: Repository, known: Project | None, tree: FileTree, revision: str) -> Project:
    """The project of a tree: as the fleet knows it, else as its files look. Raises UserError when they look like none."""
    if known is not None:
        return replace(known, sha256="", git="", folder=repository.name, version=revision)
    roots = ("src",) if any(path.startswith("src/") and path.endswith(".py") for path in tree) else (".",)
    sources = _packages(tree, roots[0])
    tests = _tests(tree)
    if not sources or not tests:
        lacking = "package" if not sources else "tests"
        raise UserError("--project", repository.name, f"a project of the fleet: no {lacking} to be seen in the files")
    return Project(
        name=repository.short,
        version=revision,
        sources=sources,
        tests=tests,
        licence=UNKNOWN_LICENCE,
        folder=repository.name,
        path=roots,
    )


def _packages(tree: FileTree, root: str) -> tuple[str, ...]:
    """Packages directly below an import root; where there are none, its modules."""
    prefix = "" if root == "." else f"{root}/"
    inner = [path.removeprefix(prefix) for path in tree if path.startswith(prefix)]
    packages = {path.partition("/")[0] for path in inner if path.endswith("/__init__.py") and path.count("/") == 1}
    found = sorted(packages - _NO_PACKAGE)
    modules = [path for path in inner if "/" not in path and path.endswith(".py") and path not in ("setup.py", "conftest.py")]
    found = found or sorted(path for path in modules if not _is_test(path))
    return tuple(f"{prefix}{name}" for name in found)


def _tests(tree: FileTree) -> tuple[str, ...]:
    """Folders named `tests` or `test` that no other one holds, and test modules at the top."""
    folders = set()
    for path in tree:
        parts = PurePosixPath(path).parts[:-1]
        first = next((index for index, part in enumerate(parts) if part in ("tests", "test")), None)
        if first is not None and path.endswith(".py"):
            folders.add("/".join(parts[: first + 1]))
    return (*sorted(folders), *sorted(path for path in tree if "/" not in path and _is_test(path)))


def _is_test(path: str) -> bool:
    return bool(re.fullmatch(r"(test_.*|.*_test|tests)\.py", path))
