"""Sealed files: every way to touch one is told, reading and other files are not."""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sandboxes.verification.checkers import load_module

Seal = load_module("seal").Seal

TOUCHES: dict[str, Callable[[Path], object]] = {
    "written": lambda root: (root / "tests/a.py").write_text("other"),
    "written and restored": lambda root: [(root / "tests/a.py").write_text(text) for text in ("other", "text")],
    "mapped": lambda root: mapped(root / "tests/a.py"),
    "written by another name": lambda root: [
        os.link(root / "tests/a.py", root / "other"),
        (root / "other").write_text("other"),
    ],
    "replaced": lambda root: [(root / "new").write_text("text"), (root / "new").replace(root / "tests/a.py")],
    "removed": lambda root: (root / "tests/a.py").unlink(),
    "moved away and back": lambda root: [
        (root / one).rename(root / two) for one, two in (("tests", "kept"), ("kept", "tests"))
    ],
    "folder replaced": lambda root: [
        shutil.move(root / "tests", root / "kept"),
        shutil.copytree(root / "kept", root / "tests"),
    ],
    "rights changed": lambda root: (root / "tests/a.py").chmod(0o600),
}


def mapped(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4) as data:
        data[:4] = b"TEXT"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    for name in ("tests/a.py", "tests/b.py", "setup.cfg"):
        (tmp_path / name).write_text("text")
    return tmp_path


@pytest.mark.parametrize("name", TOUCHES)
def test_a_touch_is_told(root: Path, name: str) -> None:
    seal = Seal(str(root), ["tests/a.py", "tests/b.py", "setup.cfg"])
    TOUCHES[name](root)
    assert seal.broken().startswith("tests")


def test_reading_and_other_files_are_no_touch(root: Path) -> None:
    seal = Seal(str(root), ["tests/a.py", "setup.cfg"])
    (root / "tests/a.py").read_text()
    list((root / "tests").iterdir())
    for name in ("tests/new.py", "tests/b.py", "other"):
        (root / name).write_text("more")
        (root / name).unlink()
    assert seal.broken() == ""
