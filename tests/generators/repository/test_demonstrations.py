"""Demonstrations: from projects that never are tasks, without running anything."""

from __future__ import annotations

import ast
from itertools import islice
from pathlib import Path

import pytest

from factory.core.errors import UserError
from generators.repository.config import RepositoryConfig
from generators.repository.demonstrations import RepositoryDemonstrator
from tests.generators.repository.conftest import SHAPES


@pytest.fixture
def config(tmp_path: Path) -> RepositoryConfig:
    """Two folders for demonstrations."""
    rows = ["[locks]\n"]
    for name in ("one", "two"):
        (tmp_path / name / "shapes").mkdir(parents=True)
        (tmp_path / name / "shapes/__init__.py").write_text(SHAPES)
        rows.append(
            f'[[project]]\nname = "{name}"\nversion = "1"\nfolder = "{tmp_path / name}"\nsources = ["shapes"]\ntests = []\n'
            'licence = "MIT"\nuse = "demonstrations"\n'
        )
    path = tmp_path / "fleet.toml"
    path.write_text("".join(rows))
    return RepositoryConfig(fleet=path, excerpt_lines=8)


def test_each_restores_one_line_and_does_not_tell_it(config: RepositoryConfig, tmp_path: Path) -> None:
    found = list(RepositoryDemonstrator(config, cache=tmp_path).demonstrate(seed=1, count=30))
    assert len(found) == 30
    lines = SHAPES.split("\n")
    for instruction, demonstration, observations in found:
        edit, submit = demonstration.actions
        assert (edit.tool, submit.tool, observations) == ("edit", "submit", ("",))
        number, text = int(edit.arguments["line"]), edit.arguments["text"]
        assert lines[number - 1] == text
        shown = next(line for line in instruction.split("\n") if line.startswith(f"{number}|"))
        broken = [*lines[: number - 1], shown.partition("|")[2], *lines[number:]]
        assert ast.dump(ast.parse("\n".join(broken))) != ast.dump(ast.parse(SHAPES))
    assert {name for name in ("one 1", "two 1") for text, _, _ in found if name in text.split("\n")[0]} == {"one 1", "two 1"}


def test_the_seed_decides(config: RepositoryConfig, tmp_path: Path) -> None:
    def texts(seed: int) -> list[str]:
        return [
            text for text, _, _ in islice(RepositoryDemonstrator(config, cache=tmp_path).demonstrate(seed=seed, count=9), 9)
        ]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_withheld_projects_and_projects_of_tasks_are_not_used(config: RepositoryConfig, tmp_path: Path) -> None:
    only = RepositoryDemonstrator(config, cache=tmp_path, withheld=frozenset({"repository:one"}))
    assert [project.name for project in only.projects] == ["two"]
    with pytest.raises(UserError):
        RepositoryDemonstrator(config, cache=tmp_path, withheld=frozenset({"repository:one", "repository:two"}))


def test_it_ends_when_there_are_no_more(config: RepositoryConfig, tmp_path: Path) -> None:
    found = list(RepositoryDemonstrator(config, cache=tmp_path).demonstrate(seed=1, count=100_000))
    assert 30 < len(found) < 1000
