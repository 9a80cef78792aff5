"""What the README tells people to type is what the commands take, and the registry's questions have answers."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from factory.cli.main import app
from factory.flows.sections import ROOMS, check_settings
from factory.settings import Settings, load_settings, section
from trainer.grpo import GrpoConfig

from .factory.cli.command import ROOT, Inside, factory
from .factory.small import Small, build

__all__ = ["factory"]

README = (ROOT / "README.md").read_text()
MAKE = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def typed(text: str = README) -> list[list[str]]:
    """Every command of the shell blocks, word by word, comments left out."""
    return [shlex.split(line, comments=True) for block in blocks("sh", text) for line in block.splitlines() if line]


COMMANDS = [words[1:] for words in typed() if words[0] == ".venv/bin/factory"]
ASKED = [words[1:] for words in typed(README.split("## Ask the registry")[1].split("\n## ")[0])]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return build(tmp_path_factory.mktemp("readme") / "data")


def test_there_is_nothing_but_make_and_factory_to_type() -> None:
    assert {words[0] for words in typed()} == {"make", ".venv/bin/factory"}
    assert len(COMMANDS) >= 13 and len(ASKED) >= 10


def test_every_target_of_make_is_there() -> None:
    named = {words[1] for words in typed() if words[0] == "make"} | set(re.findall(r"`make ([a-z0-9-]+)", README))
    assert named and named <= MAKE


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_taken_as_it_stands(words: list[str]) -> None:
    """Parsed by the commands themselves, which raise for an option or an argument that there is not."""
    command: Any = typer.main.get_command(app)
    context, rest = typer.Context(command, info_name="factory"), words
    while hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    assert command.make_context(words[0], list(rest), parent=context).params


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_every_question_to_the_registry_has_an_answer(words: list[str], factory: Inside, small: Small, tmp_path: Path) -> None:
    """On a copy of a small data folder, with a task in place of TASK."""
    copy = small.copy(tmp_path / "copied")
    named = {"data/demo": str(copy.data), "TASK": copy.digests[0]}
    done = factory(*(named.get(word, word) for word in words), "--config", str(copy.config))
    assert done.code == 0 or (words[0] in ("doctor", "audit") and done.code == 1), done.err
    assert done.out or done.err
    if "rollouts.parquet" in words:
        assert (tmp_path / "rollouts.parquet").stat().st_size > 0


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.toml")), ids=lambda path: path.name)
def test_every_settings_file_that_comes_along_is_right(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    check_settings(load_settings(path))


def test_the_settings_that_the_readme_shows_are_those_of_the_file_to_begin_with() -> None:
    (shown,) = blocks("toml")
    whole = tomllib.loads((ROOT / "configs" / "factory.toml").read_text())
    for name, value in tomllib.loads(shown).items():
        assert (value.items() <= whole[name].items()) if isinstance(value, dict) else value == whole[name]
    assert section(GrpoConfig, whole["train"], "train").steps == 100


def test_every_setting_of_the_table_exists() -> None:
    rows = re.findall(r"^\| (`.*?) \| ", README.split("What people set first:")[1].split("\n\n## ")[0], re.MULTILINE)
    names = []
    for row in rows:
        first, *more = re.findall(r"`([a-z_.]+)`", row)
        names += [first, *(f"{first.split('.')[0]}{one}" if one.startswith(".") else one for one in more)]
    assert len(names) >= 12
    for name in names:
        table, _, field = name.partition(".")
        assert table in Settings.model_fields
        if field and table not in ROOMS:
            assert field in Settings.model_fields[table].annotation.model_fields  # type: ignore[union-attr]


def test_files_that_the_readme_names_are_there() -> None:
    for name in re.findall(r"`((?:docs|configs|requirements|sandboxes)/[\w/.-]+)`", README):
        assert (ROOT / name).exists(), name
