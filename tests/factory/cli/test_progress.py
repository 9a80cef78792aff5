"""Progress: plain lines on stderr where nobody watches, bars on a terminal; stdout is the result's alone."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from factory.cli import progress
from factory.cli.progress import Plain

from ..small import Small
from .command import ROOT, Inside, environment


def test_plain_lines_where_stderr_is_no_terminal(factory: Inside, small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    done = factory("generate", "terminal", "--count", "2", "--start", "900", *copy.options, "--json")
    assert done.code == 0
    told = json.loads(done.out)
    assert told["candidates"] == told["valid"] == len(told["names"]) == 2
    lines = done.err.splitlines()
    assert lines[0] == "generate and validate: 1 to do"
    assert lines[1].startswith("generate and validate: 1/1 after ")
    assert "\x1b" not in done.err and "\r" not in done.err


def test_bars_on_a_terminal(small: Small, tmp_path: Path) -> None:
    """The same command with stderr on a pseudo-terminal."""
    copy = small.copy(tmp_path / "data")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "factory.cli.main", "generate", "terminal", "--count", "1", "--start", "950"]
    variables = environment(TERM="xterm-256color", COLUMNS="100")
    with subprocess.Popen(
        [*command, *copy.options, "--json"], stdout=subprocess.PIPE, stderr=theirs, env=variables, cwd=ROOT
    ) as running:
        os.close(theirs)
        assert running.stdout is not None
        shown = _read(ours)
        result = json.loads(running.stdout.read())
        assert running.wait(60) == 0
    assert result["candidates"] == 1
    assert "\x1b[" in shown and "generate and validate" in shown and "1/1" in shown


def _read(terminal: int) -> str:
    """Everything that is written until the other end closes (which Linux tells as an error)."""
    parts = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:
        pass
    os.close(terminal)
    return b"".join(parts).decode()


def test_a_stage_of_unknown_length_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    plain = Plain()
    plain.stage("train", None)
    plain.advance("step 1, solved 0.5")
    captured = capsys.readouterr()
    first, second = captured.err.splitlines()
    assert first == "train: begins"
    assert second.startswith("train: 1 after ") and second.endswith("(step 1, solved 0.5)")
    assert captured.out == ""


def test_lines_in_between_come_at_most_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    plain = Plain()
    plain.stage("assess", 1000)
    for _ in range(999):
        plain.advance()
    assert capsys.readouterr().err == "assess: 1000 to do\n"
    plain.advance()
    assert capsys.readouterr().err.startswith("assess: 1000/1000 after ")


@pytest.mark.slow
def test_an_interrupted_command_says_how_to_go_on(small: Small, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "data")
    command = [sys.executable, "-m", "factory.cli.main", "generate", "terminal", "--count", "200", "--start", "1000"]
    with subprocess.Popen(
        [*command, *copy.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=ROOT, text=True
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stderr.readline() == "generate and validate: 4 to do\n"
        running.send_signal(signal.SIGINT)
        told, _ = running.stderr.read(), running.stdout.read()
        assert running.wait(60) == 130
    assert told.splitlines()[-1] == "factory: interrupted; the same command resumes"
    assert "Traceback" not in told
