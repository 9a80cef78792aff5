"""The fleet: what it holds, and how a wrong one is refused."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zlib
from dataclasses import replace
from pathlib import Path

import git
import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.digest import is_digest
from factory.core.errors import GeneratorError, UserError
from factory.core.files import FileTree
from factory.core.task import Mount
from generators.repository.config import RepositoryConfig
from generators.repository.dependencies import check_apart
from generators.repository.projects import Project, check_out, load_fleet

EVALUATED = {"astropy", "django", "flask", "matplotlib", "pylint", "pytest", "requests", "seaborn"}
EVALUATED |= {"scikit-learn", "sphinx", "sympy", "xarray"}
"""Repositories of SWE-bench, as its paper lists them."""


def test_the_fleet_is_pinned_and_apart_from_evaluations() -> None:
    fleet = load_fleet()
    names = {project.name for project in fleet.projects}
    assert len(fleet.used_for("tasks")) >= 6
    assert len(fleet.used_for("demonstrations")) >= 10
    assert names.isdisjoint(EVALUATED)
    assert all(is_digest(project.sha256) and project.licence for project in fleet.projects)
    assert all("==" in line and "--hash=sha256:" in line for lines in fleet.locks.values() for line in lines)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("sqlparse", "repository:sqlparse"),
        ("zope.interface", "repository:zope-interface"),
        ("My_Project", "repository:my-project"),
    ],
)
def test_the_split_key_is_the_same_for_every_spelling(name: str, key: str) -> None:
    project = replace(load_fleet().projects[0], name=name)
    assert project.key == key and project.release.startswith(f"{name}==")


GOOD = '[locks]\nl = []\n[[project]]\nname="p"\nversion="1"\nfolder="/p"\nsources=["p"]\ntests=["t"]\nlicence="MIT"\nlock="l"\n'


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("not toml", "fleet"),
        (GOOD.replace('folder="/p"', ""), "project p"),
        (GOOD.replace('licence="MIT"', 'licence="MIT"\ngit="u"'), "project p"),
        (GOOD.replace('lock="l"', 'lock="m"'), "project p.lock"),
        (GOOD.replace('["t"]', "[]"), "project p.tests"),
        (GOOD + 'use="x"\n', "project p.use"),
        (GOOD + "colour=1\n", "fleet"),
        (GOOD + GOOD[GOOD.index("[[project") :], "projects"),
    ],
)
def test_a_wrong_fleet_is_the_users_mistake(tmp_path: Path, text: str, field: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_fleet(path)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "fields",
    [{"operators": ("none",)}, {"explicitness": ("loud",)}, {"explicitness": ()}, {"workers": 0}, {"excerpt_lines": -1}],
)
def test_a_wrong_config_is_the_users_mistake(fields: dict[str, object]) -> None:
    with pytest.raises(UserError):
        RepositoryConfig(**fields)  # type: ignore[arg-type]


FIXED = "def total(items):\n    return sum(items)\n"
HIDING = {
    ".git/objects/ab/cdef": zlib.compress(b"blob 43\0" + FIXED.encode()),
    ".git/objects/pack/pack-1.pack": b"PACK\0\0\0\2",
    ".git/refs/heads/fixed": b"1\n",
    ".git/refs/stash": b"1\n",
    ".git/logs/HEAD": b"0 1 fixed\n",
    ".git/packed-refs": b"1 refs/heads/fixed\n",
    "vendor/.git": b"gitdir: ../.git/modules/vendor\n",
    "old.git/HEAD": b"ref: refs/heads/fixed\n",
    "old.git/objects/ab/cdef": zlib.compress(b"blob 43\0" + FIXED.encode()),
    "history.bundle": b"# v2 git bundle\n",
    ".hg/store/data/cart.py.i": b"1",
    ".svn/pristine/aa.svn-base": FIXED.encode(),
    ".bzr/branch/last-revision": b"1",
    "shop/cart.py.orig": FIXED.encode(),
    "shop/cart.py.rej": FIXED.encode(),
    "shop/cart.py.bak": FIXED.encode(),
    "shop/cart.py~": FIXED.encode(),
    "shop/.cart.py.swp": FIXED.encode(),
    "shop/cart.pyc": b"\xa7\r\r\n",
    "shop/__pycache__/cart.cpython-311.pyc": b"\xa7\r\r\n",
    "shop.egg-info/SOURCES.txt": b"shop/cart.py\n",
    "src/shop.egg-info/PKG-INFO": b"Name: shop\n",
    "shop.egg": b"PK",
    ".eggs/shop/cart.py": FIXED.encode(),
    "dist/shop-1.0.tar.gz": gzip.compress(FIXED.encode()),
    "shop-1.0-py3-none-any.whl": b"PK",
    "build/lib/shop/cart.py": FIXED.encode(),
    ".cache/pip/http-v2/a/b/abc.body": b"PK",
    ".tox/py311/lib/site-packages/shop/cart.py": FIXED.encode(),
    ".venv/lib/shop/cart.py": FIXED.encode(),
    "lib/site-packages/shop/cart.py": FIXED.encode(),
    ".mypy_cache/3.11/shop.data.json": b"{}",
    ".hypothesis/examples/1": b"1",
    "htmlcov/cart_py.html": b"<html>",
    ".ipynb_checkpoints/a.ipynb": b"{}",
}
"""Where the text of a project may hide from a search for lines, or stand a second time."""


@pytest.mark.parametrize("source", ["folder", "git", "archive"])
def test_nothing_in_hiding_gets_into_a_tree(tmp_path: Path, source: str) -> None:
    """A project whose tree is planted with each hiding place, by each way in."""
    root, plain = tmp_path / "planted", {"shop/cart.py": FIXED.encode(), "shop/__init__.py": b"", "README.md": b"A shop.\n"}
    for path, data in {**plain, **HIDING}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    fields = {"name": "shop", "version": "1", "sources": ("shop",), "tests": ("tests",), "licence": "MIT"}
    if source == "folder":
        project = Project(**fields, folder=str(root))  # type: ignore[arg-type]
    elif source == "git":
        # A checkout can not hold histories of its own; a commit can hold everything else.
        with git.Repo.init(tmp_path / "repository") as repository:
            with repository.config_writer() as config:
                config.set_value("user", "name", "n").set_value("user", "email", "e@example.org")
            committed = {path: data for path, data in {**plain, **HIDING}.items() if ".git" not in path.split("/")}
            for path, data in committed.items():
                (tmp_path / "repository" / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / "repository" / path).write_bytes(data)
            repository.git.add("--force", "--all")
            repository.index.commit("all")
        project = Project(**{**fields, "version": "HEAD"}, git=str(tmp_path / "repository"))  # type: ignore[arg-type]
    else:
        archive = tmp_path / "shop.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(root, "shop-1")
        sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
        archive.rename(tmp_path / f"shop-1-{sha256[:16]}.tar.gz")
        project = Project(**fields, sha256=sha256)  # type: ignore[arg-type]
    found = check_out(project, tmp_path, MemoryBlobs())
    assert set(found.environment_tree()) == set(plain)
    assert set(found.sealed_tree()) == {"README.md"}


@pytest.mark.parametrize(
    ("installed", "path", "refused"),
    [
        ("packaging/version.py", ("src",), True),
        ("packaging/version.py", (".", "src"), True),
        ("src/packaging/version.py", (".",), True),
        ("packaging/version.py", (".",), False),
        ("packaging/other.py", ("src",), False),
        ("version.py", ("src",), False),
    ],
)
def test_a_project_among_its_own_test_dependencies_is_refused(
    tmp_path: Path, installed: str, path: tuple[str, ...], refused: bool
) -> None:
    blobs = MemoryBlobs()
    (tmp_path / "src/packaging").mkdir(parents=True)
    (tmp_path / "src/packaging/version.py").write_text(FIXED)
    project = Project(
        name="packaging",
        version="1",
        sources=("src/packaging",),
        tests=("tests",),
        licence="MIT",
        path=path,
        folder=str(tmp_path),
    )
    mount = Mount(path="/opt/deps", tree=FileTree.of(blobs, {installed: "x = 1\n"}).save(blobs))
    checkout = check_out(project, tmp_path, blobs)
    if refused:
        with pytest.raises(GeneratorError, match=rf"packaging==1 is refused: {installed} is among its test dependencies"):
            check_apart(checkout, mount, blobs)
    else:
        check_apart(checkout, mount, blobs)
