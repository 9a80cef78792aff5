"""Which files a row speaks of, and what a project's layout looks like."""

from __future__ import annotations

import tarfile
from pathlib import Path

import git
import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import GeneratorError, UserError
from factory.core.files import FileTree
from generators.repository.exchange.checkouts import Checkouts, Place, laid_out, repository_of
from generators.repository.projects import load_fleet
from tests.generators.repository.conftest import FILES


@pytest.mark.parametrize(
    ("repo", "name", "commit"),
    [
        ("tkem/schedule", "tkem/schedule", ""),
        ("swesmith/tkem__schedule.82a43db1", "tkem/schedule", "82a43db1"),
        ("andialbrecht__sqlparse.e57923b3", "andialbrecht/sqlparse", "e57923b3"),
        ("schedule", "schedule", ""),
        ("zope/zope.interface", "zope/zope.interface", ""),
    ],
)
def test_the_repository_that_a_row_names(repo: str, name: str, commit: str) -> None:
    found = repository_of(repo)
    assert (found.name, found.commit) == (name, commit)


@pytest.mark.parametrize("repo", ["", "/", "☃"])
def test_no_name_is_a_mistake(repo: str) -> None:
    with pytest.raises(UserError):
        repository_of(repo)


@pytest.mark.parametrize(
    ("paths", "sources", "tests", "roots"),
    [
        (["shapes/__init__.py", "shapes/a.py", "tests/test_a.py", "setup.py"], ("shapes",), ("tests",), (".",)),
        (["src/shapes/__init__.py", "tests/unit/test_a.py", "docs/conf.py"], ("src/shapes",), ("tests",), ("src",)),
        (["shapes.py", "test_shapes.py", "setup.py", "conftest.py"], ("shapes.py",), ("test_shapes.py",), (".",)),
        (["h11/__init__.py", "h11/tests/__init__.py", "h11/tests/test_a.py"], ("h11",), ("h11/tests",), (".",)),
        (["tests/__init__.py", "tests/test_a.py", "a.py"], ("a.py",), ("tests",), (".",)),
    ],
)
def test_the_layout_that_files_look_like(
    paths: list[str], sources: tuple[str, ...], tests: tuple[str, ...], roots: tuple[str, ...]
) -> None:
    tree = FileTree.of(MemoryBlobs(), dict.fromkeys(paths, "x\n"))
    found = laid_out(repository_of("owner/shapes"), None, tree, "1")
    assert (found.sources, found.tests, found.path) == (sources, tests, roots)
    assert found.name == "shapes" and found.licence == "NOASSERTION"


@pytest.mark.parametrize("paths", [["README"], ["shapes/__init__.py"], ["tests/test_a.py"]])
def test_files_that_look_like_no_project_are_told(paths: list[str]) -> None:
    with pytest.raises(UserError, match="a project of the fleet"):
        laid_out(repository_of("owner/shapes"), None, FileTree.of(MemoryBlobs(), dict.fromkeys(paths, "x\n")), "1")


def test_a_git_repository_is_read_at_the_rows_commit(checkout: Path, fleet: Path, tmp_path: Path) -> None:
    blobs = MemoryBlobs()
    with git.Repo(checkout) as repository:
        commit = repository.head.commit.hexsha
    places = Checkouts(Place(source=str(checkout)), load_fleet(fleet), tmp_path)
    for repo, named in (("owner/shapes", commit), (f"swesmith/owner__shapes.{commit[:8]}", ""), ("shapes", "")):
        found = places.checkout(repo, named, blobs)
        assert set(found.tree) == set(FILES) and found.revision == commit
        assert found.project.sources == ("shapes",)  # as the fleet has it
    with pytest.raises(UserError, match="a repository with that commit"):
        places.checkout("owner/shapes", "0" * 40, blobs)


def test_a_folder_and_an_archive_are_taken_as_they_are(checkout: Path, fleet: Path, tmp_path: Path) -> None:
    archive = tmp_path / "shapes-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for path in FILES:
            tar.add(checkout / path, f"shapes-1.0/{path}")
    folder = tmp_path / "plain"
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    for source in (archive, folder / "shapes-1.0"):
        found = Checkouts(Place(source=str(source)), load_fleet(fleet), tmp_path).checkout("shapes", "", MemoryBlobs())
        assert set(found.tree) == set(FILES) and found.revision == "shapes-1.0"


def test_without_a_source_it_is_the_fleets_project_or_none(fleet: Path, tmp_path: Path) -> None:
    places = Checkouts(Place(), load_fleet(fleet), tmp_path)
    assert set(places.checkout("owner/Shapes", "", MemoryBlobs()).tree) == set(FILES)
    with pytest.raises(GeneratorError, match="no source: the fleet has no project 'other'"):
        places.checkout("owner/other", "", MemoryBlobs())
    with pytest.raises(UserError, match="one of shapes"):
        Checkouts(Place(project="other"), load_fleet(fleet), tmp_path)
