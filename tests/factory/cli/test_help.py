"""Help: of every command, at once, and the same in the written reference."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from factory.cli.main import app
from factory.cli.reference import commands, reference

from .command import ROOT, Inside, environment, process

PATHS = [path.split()[1:] for path, _ in commands(typer.main.get_command(app), "factory")]


def test_every_command_of_the_surface_is_there() -> None:
    assert {" ".join(path) for path in PATHS} >= {
        *("nightly", "serve", "generate", "assess", "warmstart", "train", "evaluate", "report", "doctor"),
        *(
            f"tasks {name}"
            for name in ("list", "show", "why", "diff", "lineage", "replay", "withdraw", "verify", "gc", "import", "export")
        ),
        *("trajectories list", "trajectories show", "trajectories export", "alias set", "alias log"),
        *("split show", "split check", "audit contamination", "audit show"),
    }


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_of_a_command_names_it_and_says_what_it_does(path: list[str], factory: Inside) -> None:
    done = factory(*path, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: factory {' '.join(path)} ")
    assert "--config" in done.out and "--data" in done.out
    assert done.err == ""


@pytest.mark.parametrize("path", [[], ["tasks"], ["trajectories"], ["alias"], ["split"], ["audit"]], ids=" ".join)
def test_a_group_alone_says_what_it_has(path: list[str], factory: Inside) -> None:
    done = factory(*path)
    assert done.code == 0
    assert "Commands:" in done.err and done.out == ""


def test_top_level_help_answers_in_half_a_second() -> None:
    """The best of five starts: others may be at work on the machine. The bound leaves room for a slow one."""
    seconds = []
    for _ in range(5):
        begun = time.perf_counter()
        assert process("--help").code == 0
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 1.0


def test_top_level_help_loads_nothing_heavy() -> None:
    code = "import sys, factory.cli.main; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"torch", "vllm", "prefect", "sqlalchemy", "docker", "pyarrow", "matplotlib", "pydantic", "numpy", "libcst"}
    assert heavy & set(done.stdout.split()) == set()


def test_the_written_reference_is_that_of_the_commands() -> None:
    """After a change of a command: `python -m factory.cli.reference > docs/cli.md`."""
    assert (ROOT / "docs" / "cli.md").read_text() == reference()


def test_the_reference_has_every_command_with_its_options() -> None:
    text = reference()
    for path in PATHS:
        assert f"## `factory {' '.join(path)}" in text
    section = text.split("## `factory tasks gc`")[1].split("##")[0]
    assert "`--dry-run`: Count, remove nothing." in section


def test_the_installed_command_is_main() -> None:
    declared = (Path(ROOT) / "pyproject.toml").read_text()
    assert 'factory = "factory.cli.main:main"' in declared
