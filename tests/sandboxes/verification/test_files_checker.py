"""The checker of file trees: what it accepts, and what no trick gets past it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes.verification.checkers import load

check = load("files")

KEPT = b"one\ntwo\n"
MADE = b"hello\n"
TREE: dict[str, Any] = {
    "kept": {
        "kind": "file",
        "size": 8,
        "executable": False,
        "loose": False,
        "sha256": hashlib.sha256(KEPT).hexdigest(),
    },
    "made": {
        "kind": "file",
        "size": 6,
        "executable": False,
        "loose": True,
        "sha256": hashlib.sha256(MADE).hexdigest(),
        "sha256_open": hashlib.sha256(b"hello").hexdigest(),
    },
    "tool": {
        "kind": "file",
        "size": 8,
        "executable": True,
        "loose": False,
        "sha256": hashlib.sha256(KEPT).hexdigest(),
    },
    "box": {"kind": "directory"},
    "box/link": {"kind": "link", "target": "../kept", "folder": "box"},
    "near": {"kind": "link", "target": "kept", "folder": ""},
    "to box": {"kind": "link", "target": "box", "folder": ""},
}
STEPS = [{"name": "1 write", "paths": ["made"]}, {"name": "2 delete", "paths": ["gone"]}]
VIEWS = ("asked", "whole")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A submission that is as asked for."""
    root = tmp_path / "submission"
    (root / "box").mkdir(parents=True)
    (root / "kept").write_bytes(KEPT)
    (root / "made").write_bytes(MADE)
    (root / "tool").write_bytes(KEPT)
    (root / "tool").chmod(0o755)
    (root / "box" / "link").symlink_to("../kept")
    (root / "near").symlink_to("kept")
    (root / "to box").symlink_to("box")
    return root


def states(root: Path, view: str) -> dict[str, str]:
    results = check({"view": view, "tree": TREE, "steps": STEPS}, str(root), "", "")
    assert all(result.keys() == {"name", "state", "detail"} for result in results)
    return {result["name"]: result["state"] for result in results}


def test_each_view_names_its_checks_and_passes_the_asked_for_tree(tree: Path) -> None:
    assert states(tree, "asked") == {"1 write": "passed", "2 delete": "passed", "nothing else changed": "passed"}
    assert states(tree, "whole") == {"paths": "passed", "kinds": "passed", "contents": "passed", "links": "passed"}


def test_a_failed_step_leaves_the_other_checks_alone(tree: Path) -> None:
    (tree / "gone").write_text("still here")
    assert states(tree, "asked") == {"1 write": "passed", "2 delete": "failed", "nothing else changed": "passed"}


def test_a_missing_last_line_end_is_accepted_only_where_it_is_no_mistake(tree: Path) -> None:
    (tree / "made").write_bytes(b"hello")
    assert set(states(tree, "asked").values()) | set(states(tree, "whole").values()) == {"passed"}
    (tree / "kept").write_bytes(b"one\ntwo")
    assert states(tree, "asked")["nothing else changed"] == "failed"
    assert states(tree, "whole")["contents"] == "failed"


@pytest.mark.parametrize("target", ["kept", "./kept", "/workspace/kept"])
def test_a_link_may_spell_its_target_in_several_ways(tree: Path, target: str) -> None:
    (tree / "near").unlink()
    (tree / "near").symlink_to(target)
    assert set(states(tree, "asked").values()) | set(states(tree, "whole").values()) == {"passed"}


@pytest.mark.parametrize("target", ["box/", "./box", "/workspace/box/.", "box//", "box/./"])
def test_a_link_to_a_folder_may_end_as_one_does(tree: Path, target: str) -> None:
    (tree / "to box").unlink()
    os.symlink(target, tree / "to box")  # noqa: PTH211  (a Path drops the end)
    assert set(states(tree, "asked").values()) | set(states(tree, "whole").values()) == {"passed"}


@pytest.mark.attack
@pytest.mark.parametrize(
    "target", ["kept/", "kept/.", "./kept/", "kept//", "kept/./", "/workspace/kept/", "/workspace/./kept/."]
)
def test_a_link_to_a_file_that_ends_like_one_to_a_folder_leads_nowhere(tree: Path, target: str) -> None:
    (tree / "near").unlink()
    os.symlink(target, tree / "near")  # noqa: PTH211  (a Path drops the end)
    assert not (tree / "near").exists()
    assert states(tree, "asked")["nothing else changed"] == "failed"
    assert states(tree, "whole")["links"] == "failed"


def replace_by(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


TRICKS: dict[str, Callable[[Path], object]] = {
    "other content of the same size": lambda root: (root / "made").write_bytes(b"hellO\n"),
    "content with more behind it": lambda root: (root / "made").write_bytes(MADE + b"\n"),
    "a sparse giant": lambda root: os.truncate(root / "made", 1 << 40),
    "a FIFO in place of the file": lambda root: replace_by(root / "made", os.mkfifo),
    "a folder in place of the file": lambda root: replace_by(root / "made", Path.mkdir),
    "a link to a file with the content": lambda root: (
        (root.parent / "right").write_bytes(MADE),
        replace_by(root / "made", lambda path: path.symlink_to(root.parent / "right")),
    ),
    "a link to itself": lambda root: replace_by(root / "made", link_to_itself),
    "an executable bit": lambda root: (root / "made").chmod(0o755),
    "a lost executable bit": lambda root: (root / "tool").chmod(0o644),
    "a changed bystander": lambda root: (root / "kept").write_bytes(b"one\ntwO\n"),
    "a lost bystander": lambda root: (root / "kept").unlink(),
    "an extra file": lambda root: (root / "extra").write_bytes(b""),
    "an extra folder": lambda root: (root / "box" / "extra").mkdir(),
    "an extra FIFO": lambda root: os.mkfifo(root / "extra"),
    "an undecodable name": lambda root: Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe")).write_bytes(b""),
    "a link that leads elsewhere": lambda root: replace_by(root / "near", lambda path: path.symlink_to("tool")),
    "a link through nowhere": lambda root: replace_by(root / "near", lambda path: path.symlink_to("no/../kept")),
    "a file in place of a link": lambda root: replace_by(root / "near", lambda path: path.write_bytes(KEPT)),
    "a link in place of a folder": lambda root: (
        (root / "box" / "link").unlink(),
        (root / "box").rmdir(),
        (root.parent / "elsewhere").mkdir(),
        (root.parent / "elsewhere" / "link").symlink_to("../kept"),
        (root / "box").symlink_to("../elsewhere"),
    ),
}


@pytest.mark.attack
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_fails_a_check(tree: Path, trick: str, view: str) -> None:
    TRICKS[trick](tree)
    before = time.monotonic()
    assert "failed" in states(tree, view).values()
    assert time.monotonic() - before < 2


@pytest.mark.attack
@pytest.mark.parametrize("view", VIEWS)
def test_endless_trees_fail_without_being_walked_to_the_end(tree: Path, view: str) -> None:
    here = os.open(tree, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("a", dir_fd=here)
        inner = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        assert "failed" in states(tree, view).values()
    finally:  # shutil.rmtree, with which pytest clears its folders, recurses too deep
        subprocess.run(["rm", "-rf", str(tree / "a")], check=True)


@pytest.mark.parametrize("view", VIEWS)
def test_the_details_are_short_ascii(tree: Path, view: str) -> None:
    for number in range(200):
        Path(os.fsdecode(os.fsencode(tree) + b"/\xff" + str(number).encode())).write_bytes(b"")
    for result in check({"view": view, "tree": TREE, "steps": STEPS}, str(tree), "", ""):
        assert len(result["detail"]) <= 300 and result["detail"].isascii()
