"""Projects: what is broken, where it comes from, and how its own tests are run."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from factory.core.blobs import BlobStore
from factory.core.digest import Digest, digest_of
from factory.core.errors import UserError
from factory.core.files import FileTree
from factory.core.task import repository_key
from generators.repository import sources

NEVER_SOURCE = r"(test_.*|.*_test|tests|conftest|sitecustomize|usercustomize|_pytest.*|pytest.*)\.py"
"""Names of files that are not source even in a source folder: they are sealed, and never taken from a submission."""
USES = ("tasks", "demonstrations")
PACKAGED = {"default": "projects.toml", "wide": "fleets/wide.toml"}
"""Fleets that come with the package, by name."""
DEFAULT = Path("default")


@dataclass(frozen=True, kw_only=True)
class Project:
    """One project of a fleet. Exactly one of `sha256`, `git` and `folder` says where its files come from."""

    name: str
    version: str
    """Release of a source distribution, or the commit (any revision) of a git repository; free text for a folder."""
    sources: tuple[str, ...]
    """Package folders, or single `.py` files, that are broken and graded; relative to the project's root."""
    tests: tuple[str, ...]
    """Test folders or files; they are not in the agent's tree. Empty: the project serves for demonstrations only."""
    licence: str
    """SPDX expression."""
    sha256: str = ""
    """Digest of the source distribution on the package index."""
    git: str = ""
    """URL or path of a git repository."""
    folder: str = ""
    """Path of a folder that is taken as it is."""
    path: tuple[str, ...] = (".",)
    """Import roots, relative to the project's root, first come first."""
    lock: str = "pytest"
    """Name of the lock of test dependencies."""
    options: tuple[str, ...] = ()
    """Further pytest arguments; the project's own `addopts` are not used."""
    use: str = "tasks"
    """`tasks`, or `demonstrations`: the two never share a project."""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.sha256, self.git, self.folder))) != 1:
            raise UserError(f"project {self.name}", "source", "exactly one of sha256, git and folder")
        if self.use not in USES:
            raise UserError(f"project {self.name}.use", self.use, " or ".join(USES))
        if self.use == "tasks" and not self.tests:
            raise UserError(f"project {self.name}.tests", "()", "at least one test folder or file")
        if not self.sources:
            raise UserError(f"project {self.name}.sources", "()", "at least one package folder or file")

    @property
    def release(self) -> str:
        """Name and version for people and for provenance."""
        return f"{self.name}=={self.version}"

    @property
    def key(self) -> str:
        """The split key, the same for every spelling of the name. Raises UserError for a name without a letter or digit."""
        return repository_key(self.name)

    def is_test(self, path: str) -> bool:
        """Whether a file belongs to the tests."""
        return any(path == test or path.startswith(f"{test}/") for test in self.tests)

    def is_source(self, path: str) -> bool:
        """Whether a file is graded source: the rule that the pytest checker follows too."""
        below = any(path == source or path.startswith(f"{source}/") for source in self.sources)
        name = PurePosixPath(path).name
        return below and name.endswith(".py") and not self.is_test(path) and not re.fullmatch(NEVER_SOURCE, name)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Projects and the locks of their test dependencies."""

    projects: tuple[Project, ...]
    locks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Requirement lines `name==version --hash=sha256:...`, by lock name."""

    def __post_init__(self) -> None:
        keys = [project.key for project in self.projects]
        for project in self.projects:
            if keys.count(project.key) > 1:
                raise UserError("projects", project.name, "each project once, for tasks or for demonstrations")
        for project in self.projects:
            if project.tests and project.lock not in self.locks:
                raise UserError(f"project {project.name}.lock", project.lock, f"one of {', '.join(self.locks) or 'none'}")

    def named(self, name: str) -> Project:
        """Raises UserError for a name that is not in the fleet."""
        for project in self.projects:
            if project.name == name:
                return project
        raise UserError("project", name, f"one of {', '.join(project.name for project in self.projects)}")

    def used_for(self, use: str) -> tuple[Project, ...]:
        return tuple(project for project in self.projects if project.use == use)


def load_fleet(path: Path | None = None) -> Fleet:
    """The fleet of a TOML file or of a name in `PACKAGED`; None: `default`. Raises UserError.

    `include` of a file lists other fleets, by name or by a path relative to it: their projects come first, as they stand there.
    """
    projects, locks = _collected(fleet_file(path or DEFAULT), ())
    return Fleet(projects=tuple(projects), locks=locks)


def fleet_file(path: Path, beside: Path = Path()) -> Path:
    """The file of a fleet that is named by a path, relative to the folder `beside`, or by a name in `PACKAGED`."""
    own = PACKAGED.get(str(path))
    return Path(str(files("generators.repository").joinpath(own))) if own else beside / path


def _collected(file: Path, above: tuple[Path, ...]) -> tuple[list[Project], dict[str, tuple[str, ...]]]:
    """Projects and locks of a file and of those that it includes; `above` are the files that include it."""
    if file.resolve() in above:
        raise UserError("fleet", str(file), "a fleet that does not include itself")
    rows = _read(file)
    projects: list[Project] = []
    locks: dict[str, tuple[str, ...]] = {}
    for name in rows.include:
        more, found = _collected(fleet_file(Path(name), file.parent), (*above, file.resolve()))
        projects += [project for project in more if project not in projects]
        _add_locks(locks, found, file)
    _add_locks(locks, rows.locks, file)
    adapter = TypeAdapter(Project)
    return [*projects, *(_project(row, adapter) for row in rows.project)], locks


def _add_locks(locks: dict[str, tuple[str, ...]], more: dict[str, tuple[str, ...]], file: Path) -> None:
    for name, lines in more.items():
        if locks.setdefault(name, lines) != lines:
            raise UserError(f"fleet.locks.{name}", str(file), "another name: an included fleet has another lock of that name")


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """A fleet file as it is written."""

    include: tuple[str, ...] = ()
    locks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    project: tuple[dict[str, Any], ...] = ()


def _read(file: Path) -> _Rows:
    try:
        value, known = tomllib.loads(file.read_text()), [one.name for one in fields(_Rows)]
        for name in value.keys() - known:
            raise UserError("fleet", f"{file}: {name}", f"the tables of a fleet: {', '.join(known)}")
        return TypeAdapter(_Rows).validate_python(value)
    except OSError as error:
        named = f"or one of {', '.join(PACKAGED)}"
        raise UserError("fleet", str(file), f"a TOML file that can be read ({error.strerror}), {named}") from None
    except ValidationError as error:
        raise UserError("fleet", str(file), f"a fleet file ({_first(error)})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError("fleet", str(file), f"a TOML file ({error})") from None


def _project(row: dict[str, Any], adapter: TypeAdapter[Project]) -> Project:
    name, known = row.get("name", "?"), {one.name for one in fields(Project)}
    for field_name in row.keys() - known:
        raise UserError("fleet", f"{name}.{field_name}", f"the fields of a project: {', '.join(sorted(known))}")
    try:
        return adapter.validate_python(row)
    except ValidationError as error:
        own = error.errors()[0].get("ctx", {}).get("error")
        if isinstance(own, UserError):
            raise own from None
        raise UserError("fleet", name, f"the fields of a project ({_first(error)})") from None


def _first(error: ValidationError) -> str:
    """Place and message of the first of pydantic's errors."""
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"


@dataclass(frozen=True)
class Checkout:
    """A project with its files as data."""

    project: Project
    tree: FileTree
    revision: str
    """Release, or the full commit name."""

    @property
    def digest(self) -> Digest:
        """Names the project's content and how its tests are run."""
        project = self.project
        return digest_of(
            {
                "tree": self.tree.digest,
                "sources": project.sources,
                "tests": project.tests,
                "path": project.path,
                "options": project.options,
            }
        )

    def source_files(self) -> list[str]:
        """Paths of the graded sources, sorted."""
        return [path for path in self.tree if self.project.is_source(path)]

    def environment_tree(self) -> FileTree:
        """What the agent sees before any edit: everything but the tests."""
        return self.tree.without(*(path for path in self.tree if self.project.is_test(path)))

    def sealed_tree(self) -> FileTree:
        """What grading takes from the original: everything but the sources."""
        return self.tree.without(*self.source_files())


def check_out(project: Project, cache: Path, blobs: BlobStore) -> Checkout:
    """Fetch a project into blobs; archives and clones stay in `cache`, a hit needs no network.

    Raises GeneratorError when it can not be fetched, UserError when the source is wrong.
    """
    if project.sha256:
        archive = sources.fetch_sdist(project.name, project.version, project.sha256, cache)
        tree, revision = sources.archive_tree(archive, blobs), project.version
    elif project.git:
        tree, revision = sources.git_tree(project.git, project.version, cache, blobs)
    else:
        tree, revision = sources.folder_tree(Path(project.folder), blobs), project.version
    found = Checkout(project, tree, revision)
    if not found.source_files():
        raise UserError(f"project {project.name}.sources", project.sources, "folders or files that hold Python source")
    return found
