"""A small project with a bug, its sealed tests, and how a real pytest bundle grades what somebody left of it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.files import Entry, EntryKind, FileTree
from factory.core.outcome import Verdict
from factory.core.task import EnvironmentSpec, Limits, Mount, VerifierSpec
from sandboxes.contract import DEPENDENCIES, Backend
from sandboxes.verification.bundles import bundle
from sandboxes.verification.grade import grade

GOOD = """
def add(a, b):
    return a + b


def scale(values, factor):
    return [value * factor for value in values]
"""
BROKEN = GOOD.replace("a + b", "a - b")
TESTS = """
import pytest
from calc import add, scale


@pytest.mark.parametrize("case", ["a b", "é ☃", "x[1]", "p/q", "u::v", "line\\nbreak"])
def test_add(case):
    assert add(2, 3) == 5


class TestScale:
    def test_two(self):
        assert scale([1, 2], 2) == [2, 4]

    def test_data(self):
        with open("tests/data.txt") as file:
            assert scale([1], 3) == [int(file.read())]
"""
LATE_TESTS = """
import math
import unittest
from calc import add, scale


class TestSums(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(4, 5), 9)

    def test_near(self):
        self.assertTrue(math.isclose(add(0.5, 0.25), 0.75))

    def test_words(self):
        with open("tests/sum.txt") as file:
            self.assertEqual(add(6, 1), int(file.read()))

    def test_kept(self):
        self.assertEqual(scale([2], 2), [4])
"""
PROJECT = {
    "calc/__init__.py": GOOD,
    "calc/version.txt": "1",
    "tests/test_calc.py": TESTS,
    "tests/test_late.py": LATE_TESTS,
    "tests/data.txt": "3\n",
    "tests/sum.txt": "7\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--no-such-option'\n",
}
FIXED = [
    "tests/test_calc.py::test_add[a b]",
    r"tests/test_calc.py::test_add[\xe9 \u2603]",
    "tests/test_calc.py::test_add[x[1]]",
    "tests/test_calc.py::test_add[p/q]",
    "tests/test_calc.py::test_add[u::v]",
    r"tests/test_calc.py::test_add[line\nbreak]",
    "tests/test_late.py::TestSums::test_sum",
    "tests/test_late.py::TestSums::test_near",
    "tests/test_late.py::TestSums::test_words",
]
"""Ids that fail before the fix. As pytest's own documentation says: parameters are escaped unless ASCII and printable."""
KEPT = [
    "tests/test_calc.py::TestScale::test_two",
    "tests/test_calc.py::TestScale::test_data",
    "tests/test_late.py::TestSums::test_kept",
]
IDS = [*FIXED, *KEPT]
SPEC = {
    "sources": ["calc"],
    "sealed": ["tests"],
    "never": r"(test_.*|.*_test|tests|conftest|sitecustomize|usercustomize|_pytest.*|pytest.*)\.py",
    "path": ["."],
    "late": [DEPENDENCIES],
    "options": [],
    "files": ["tests/test_calc.py", "tests/test_late.py"],
    "tests": IDS,
    "audit": FIXED,
    "cpu_ms": {},
    "other_ms": 1000,
    "run_ms": 8_000,
    "cpu_s": 8,
}
Graded = Callable[[dict[str, str]], Verdict]


@pytest.fixture(scope="module")
def store() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture(scope="module")
def packages(store: MemoryBlobs) -> Mount:
    """pytest and what it needs, as installed here."""
    contents: dict[str, bytes | str] = {}
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        for file in importlib.metadata.files(name) or ():
            if file.suffix == ".py" and ".." not in file.parts:
                contents[str(file)] = Path(str(file.locate())).read_bytes()
    return Mount(path=DEPENDENCIES, tree=FileTree.of(store, contents).save(store))


@pytest.fixture
def graded(backend: Backend, store: MemoryBlobs, packages: Mount) -> Graded:
    sealed = FileTree.of(store, {path: text for path, text in PROJECT.items() if path != "calc/__init__.py"})
    verifier = VerifierSpec(
        bundle=bundle(store, checker="pytest_checker", spec=SPEC, files=sealed), wall_ms=60_000, memory_bytes=1 << 28
    )
    environment = EnvironmentSpec(files=FileTree().save(store), mounts=(packages,), limits=Limits(memory_bytes=1 << 29))

    def run(files: dict[str, str]) -> Verdict:
        entries: dict[str, Entry] = dict(FileTree.of(store, {p: t for p, t in files.items() if not t.startswith("-> ")}))
        entries |= {p: Entry(EntryKind.LINK, target=t[3:]) for p, t in files.items() if t.startswith("-> ")}
        end = FileTree(entries).save(store)
        return grade(backend, store, environment, [verifier], start=environment.files, end=end)[0]

    return run


def left_by_agent(source: str, more: dict[str, str] | None = None) -> dict[str, str]:
    return {"calc/__init__.py": source, "calc/version.txt": "1", "pyproject.toml": PROJECT["pyproject.toml"], **(more or {})}
