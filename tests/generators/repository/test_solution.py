"""The reference solution, taken by the agent's own tools."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factory.agent.tools import TOOLS, problem
from factory.core.demonstration import Demonstration
from factory.core.digest import canonical_bytes
from factory.core.task import Limits
from generators.repository.solution import changed_lines, restoring, restoring_files
from sandboxes.contract import CommandResult


class Folder:
    """A folder that answers as a sandbox does, for tools that read and write files and run `sed`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read_file(self, path: str, limit: int) -> bytes:
        return (self.root / path.removeprefix("/workspace/")).read_bytes()[:limit]

    def write_file(self, path: str, data: bytes) -> None:
        (self.root / path.removeprefix("/workspace/")).write_bytes(data)

    def run(self, command: str, *, timeout_s: float, output_bytes: int) -> CommandResult:
        done = subprocess.run(["sh", "-c", command], cwd=self.root, capture_output=True, timeout=timeout_s, check=False)
        return CommandResult(exit_code=done.returncode, output=done.stdout + done.stderr)


def taken(folder: Path, demonstration: Demonstration, path: str, broken: str) -> bytes:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(broken.encode())
    sandbox: Any = Folder(folder)
    for action in demonstration.actions:
        tool = TOOLS[action.tool]
        if tool.run is None:
            break
        assert tool.run(sandbox, action.arguments, Limits()).exit_code == 0
    return target.read_bytes()


LINES = st.lists(st.sampled_from(["a", "b", "  c", "", "d = 1"]), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, LINES, st.booleans())
def test_the_actions_restore_the_original(tmp_path: Path, broken: list[str], original: list[str], crlf: bool) -> None:
    end = "\r\n" if crlf else "\n"
    before, after = end.join(["first", *broken, ""]), end.join(["first", *original, ""])
    demonstration = restoring("it's/a.py", before, after)
    assert demonstration.actions[-1].tool == "submit"
    assert taken(tmp_path, demonstration, "it's/a.py", before) == after.encode()


@pytest.mark.parametrize(("broken", "tools"), [("x\nB\nz\n", ["edit", "submit"]), ("x\nB\nC\nz\n", ["bash", "edit", "submit"])])
def test_one_line_is_one_edit(broken: str, tools: list[str]) -> None:
    assert [action.tool for action in restoring("a.py", broken, "x\ny\nz\n").actions] == tools


def test_changed_lines() -> None:
    assert changed_lines("a\nB\nc", "a\nb\nc") == (["B"], ["b"])


TEXTS = st.none() | st.lists(st.sampled_from(["a", "b\r", "  c", "", "d = '%s\\n'", "é", "e\u0301 ☃", "-x"]), max_size=8).map(
    "\n".join
)
STATES = st.dictionaries(st.sampled_from(["it's/a.py", "b.py", "p/q/c.py"]), TEXTS, max_size=3)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STATES, STATES)
def test_the_actions_restore_several_files(
    tmp_path: Path, broken: dict[str, str | None], original: dict[str, str | None]
) -> None:
    folder = tmp_path / uuid.uuid4().hex
    folder.mkdir()
    for path, text in broken.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text.encode())
    # As it is stored and read again: what a canonical text changes must not be in it.
    demonstration = Demonstration.from_manifest(json.loads(canonical_bytes(restoring_files(broken, original).manifest())))
    sandbox: Any = Folder(folder)
    for action in demonstration.actions:
        assert not problem(("bash", "edit", "submit"), action)
        tool = TOOLS[action.tool]
        if tool.run is not None:
            assert tool.run(sandbox, action.arguments, Limits()).exit_code == 0
    found = {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in folder.rglob("*") if path.is_file()}
    wanted = {path: text for path, text in original.items() if text is not None}
    assert found == wanted


def test_long_files_are_written_in_pieces_that_a_tool_takes(tmp_path: Path) -> None:
    text = "☃e\u0301'%\\" * 20_000
    demonstration = restoring_files({}, {"new/long.py": text})
    sandbox: Any = Folder(tmp_path)
    for action in demonstration.actions:
        assert not problem(("bash", "edit", "submit"), action)
        tool = TOOLS[action.tool]
        if tool.run is not None:
            assert tool.run(sandbox, action.arguments, Limits()).exit_code == 0
    assert (tmp_path / "new/long.py").read_text() == text


def test_lines_above_the_first_one_are_an_edit() -> None:
    demonstration = restoring_files({"a.py": "x = 1\n"}, {"a.py": "import y\n\nx = 1\n"})
    assert [action.tool for action in demonstration.actions] == ["edit", "submit"]
    assert demonstration.actions[0].arguments == {"path": "a.py", "line": "1", "text": "import y\n\nx = 1"}
