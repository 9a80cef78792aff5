"""Where files come from: archives, git repositories, folders. Nothing unsafe, nothing of a history, no checkout written."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import git
import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import GeneratorError, UserError
from generators.repository.projects import Project, check_out
from generators.repository.sources import archive_tree, fetch_sdist, folder_tree, git_tree


def archive(path: Path, members: dict[str, bytes], *more: tarfile.TarInfo) -> str:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for info in more:
            tar.addfile(info)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_archive_is_read_without_its_top_folder_and_its_remains(tmp_path: Path) -> None:
    link = tarfile.TarInfo("p-1/link")
    link.type, link.linkname = tarfile.SYMTYPE, "p/a.py"
    names = ["p-1/p/a.py", "p-1/p/__pycache__/a.cpython-311.pyc", "p-1/p.egg-info/SOURCES.txt", "p-1/build/lib/p/a.py"]
    archive(tmp_path / "p.tar.gz", dict.fromkeys(names, b"1"), link)
    assert list(archive_tree(tmp_path / "p.tar.gz", MemoryBlobs())) == ["p/a.py"]


@pytest.mark.parametrize("name", ["../out.py", "p-1/../../out.py"])
def test_an_archive_that_points_outside_is_refused(tmp_path: Path, name: str) -> None:
    archive(tmp_path / "p.tar.gz", {name: b"1"})
    with pytest.raises(GeneratorError, match="outside"):
        archive_tree(tmp_path / "p.tar.gz", MemoryBlobs())


@pytest.mark.parametrize("data", [b"PK\x03\x04 a zip file", b""])
def test_what_is_no_tar_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "p.zip").write_bytes(data)
    with pytest.raises(GeneratorError, match=r"p\.zip: not a whole tar archive"):
        archive_tree(tmp_path / "p.zip", MemoryBlobs())


def test_an_archive_that_breaks_off_is_refused(tmp_path: Path) -> None:
    archive(tmp_path / "p.tar.gz", {"p-1/p/a.py": bytes(range(256)) * 4000})
    (tmp_path / "p.tar.gz").write_bytes((tmp_path / "p.tar.gz").read_bytes()[:-200])
    with pytest.raises(GeneratorError, match="not a whole tar archive"):
        archive_tree(tmp_path / "p.tar.gz", MemoryBlobs())


def test_a_cached_archive_needs_no_index_and_is_checked(tmp_path: Path) -> None:
    known = hashlib.sha256(b"archive").hexdigest()
    cached = tmp_path / f"no-such-project-1.0-{known[:16]}.tar.gz"
    cached.write_bytes(b"archive")
    assert fetch_sdist("no-such-project", "1.0", known, tmp_path) == cached
    cached.write_bytes(b"another")
    with pytest.raises(GeneratorError, match="sha256"):
        fetch_sdist("no-such-project", "1.0", known, tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    made = git.Repo.init(root)
    with made.config_writer() as config:
        config.set_value("user", "name", "n").set_value("user", "email", "e@example.org")
    (root / "p").mkdir()
    (root / "p/a.py").write_text("def f():\n    return 1\n")
    made.index.add(["p/a.py"])
    made.index.commit("one")
    (root / "p/a.py").write_text("def f():\n    return 2\n")
    made.index.add(["p/a.py"])
    made.index.commit("two")
    (root / "p/a.py").write_text("uncommitted\n")
    made.close()
    return root


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_commit_of_a_local_repository_is_read_and_the_checkout_left_alone(repository: Path, tmp_path: Path) -> None:
    before, blobs = everything(repository), MemoryBlobs()
    tree, commit = git_tree(str(repository), "HEAD~1", tmp_path / "cache", blobs)
    assert tree.read(blobs, "p/a.py") == b"def f():\n    return 1\n"
    assert list(tree) == ["p/a.py"]
    assert len(commit) == 40
    assert everything(repository) == before


def test_a_url_is_cloned_once(repository: Path, tmp_path: Path) -> None:
    blobs, cache = MemoryBlobs(), tmp_path / "cache"
    url = repository.as_uri()
    first = git_tree(url, "HEAD", cache, blobs)
    assert first[0].read(blobs, "p/a.py") == b"def f():\n    return 2\n"
    (repository / ".git/HEAD").unlink()
    assert git_tree(url, first[1], cache, blobs) == first


@pytest.mark.parametrize("revision", ["no-such-branch", "0" * 40])
def test_a_commit_that_is_not_there_is_the_users_mistake(repository: Path, tmp_path: Path, revision: str) -> None:
    with pytest.raises(UserError, match="commit"):
        git_tree(str(repository), revision, tmp_path / "cache", MemoryBlobs())


def test_a_folder_is_read_without_links_histories_and_caches(repository: Path) -> None:
    (repository / "link.py").symlink_to("p/a.py")
    (repository / "p/__pycache__").mkdir()
    (repository / "p/__pycache__/a.pyc").write_bytes(b"1")
    assert list(folder_tree(repository, MemoryBlobs())) == ["p/a.py"]


def test_sources_tests_and_the_rest_are_told_apart(tmp_path: Path) -> None:
    names = ["p/a.py", "p/test_a.py", "p/conftest.py", "p/data.json", "p/tests/b.py", "setup.py", "q.py", "p/sitecustomize.py"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    project = Project(name="p", version="1", folder=str(tmp_path), sources=("p", "q.py"), tests=("p/tests",), licence="MIT")
    found = check_out(project, tmp_path / "cache", MemoryBlobs())
    assert found.source_files() == ["p/a.py", "q.py"]
    assert "p/tests/b.py" not in found.environment_tree()
    assert set(found.sealed_tree()) == set(names) - {"p/a.py", "q.py"}
