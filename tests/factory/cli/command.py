"""Running commands: as a process, and inside the test's own process, where that is as good and faster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from factory.cli.main import main

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(**variables: str) -> dict[str, str]:
    """The environment without settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FACTORY_", "PREFECT_"))}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


def process(*arguments: str, cwd: Path | None = None, timeout: float = 120, **variables: str) -> Done:
    """Run `factory ARGUMENTS` as a process of its own."""
    command = [sys.executable, "-m", "factory.cli.main", *arguments]
    done = subprocess.run(
        command, cwd=cwd, env=environment(**variables), capture_output=True, text=True, timeout=timeout, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


Inside = Callable[..., Done]


@pytest.fixture
def factory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Inside:
    """Run `factory ARGUMENTS` through `main`, in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("FACTORY_")]:
        monkeypatch.delenv(name)

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["factory", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, captured.out, captured.err)

    return run
