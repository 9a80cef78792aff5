"""A small project in a git repository of its own, broken in real sandboxes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import git
import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import GeneratorError
from factory.core.task import Mount
from generators.repository.dependencies import dependency_mount
from generators.repository.projects import load_fleet
from sandboxes.backends import open_backend
from sandboxes.contract import Backend

SHAPES = '''"""Shapes."""


def area(width, height=1):
    """Width times height."""
    if width < 0 or height < 0:
        raise ValueError("negative")
    return width * height


def largest(items, key=None):
    best = None
    for item in items:
        value = item if key is None else key(item)
        if best is None or value > best[0]:
            best = (value, item)
    return None if best is None else best[1]


def countdown(number):
    found = []
    while number > 0:
        found.append(number)
        number -= 1
    return found


def unused(a, b):
    return a + b
'''
TESTS = """
import pytest
from shapes import area, countdown, largest


@pytest.mark.parametrize("case, expected", [((2, 3), 6), ((4, 1), 4), ((0, 9), 0)], ids=["two by three", "é ☃", "[0]/9"])
def test_area(case, expected):
    assert area(*case) == expected


def test_area_default():
    assert area(7) == 7


def test_negative():
    with pytest.raises(ValueError, match="negative"):
        area(-1, 2)


def test_largest():
    assert largest([3, 9, 4]) == 9


def test_largest_by_key():
    assert largest(["aa", "b", "cccc"], key=len) == "cccc"


def test_largest_of_nothing():
    assert largest([]) is None


def test_countdown():
    assert countdown(3) == [3, 2, 1]


def test_countdown_from_zero():
    assert countdown(0) == []


def test_data():
    with open("tests/data.txt") as file:
        assert file.read() == "1\\n"


order = []


def test_first():
    order.append(1)


def test_second():
    assert order == [1]


@pytest.mark.skip(reason="never")
def test_skipped():
    assert False
"""
FILES = {
    "shapes/__init__.py": SHAPES,
    "tests/test_shapes.py": TESTS,
    "tests/data.txt": "1\n",
    "README.md": "Shapes.\n",
    "setup.cfg": "[tool:pytest]\naddopts = --no-such-option\n",
}


@pytest.fixture(scope="session")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    opened = open_backend("bubblewrap", cache=tmp_path_factory.mktemp("layers"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def store() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory, backend: Backend, store: MemoryBlobs) -> Path:
    """A cache that holds the test dependencies of the fleet's own lock."""
    cache = tmp_path_factory.mktemp("downloads")
    try:
        mount(cache, backend, store)
    except GeneratorError as error:
        pytest.skip(f"the package index does not give the test dependencies: {error}")
    return cache


def mount(cache: Path, backend: Backend, store: MemoryBlobs) -> Mount:
    return dependency_mount(load_fleet().locks["pytest"], cache, backend, "python-3.11", store)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's repository with the project committed."""
    root = tmp_path_factory.mktemp("user") / "shapes"
    with git.Repo.init(root) as repository:
        with repository.config_writer() as config:
            config.set_value("user", "name", "n").set_value("user", "email", "e@example.org")
        for path, text in FILES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        repository.index.add(list(FILES))
        repository.index.commit("all")
    return root


@pytest.fixture(scope="session")
def fleet(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet file of that one repository."""
    lock = "".join(f'"{line}",\n' for line in load_fleet().locks["pytest"])
    path = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    path.write_text(
        f'[locks]\npytest = [\n{lock}]\n[[project]]\nname = "shapes"\nversion = "HEAD"\ngit = "{checkout}"\n'
        'sources = ["shapes"]\ntests = ["tests"]\nlicence = "MIT"\n'
    )
    return path
