"""Each skill's meaning on the pure model against real bash, and its near misses against the model."""

from __future__ import annotations

import os
import random
import re
import stat
import subprocess
from pathlib import Path

import pytest

from factory.core.files import EntryKind
from generators.names import SYLLABLES, Names, partition
from generators.terminal.skills import SKILLS
from generators.terminal.state import FOLDER, Node, bystanders

NAME = re.compile(r"\b[a-z]{4}\b")


def lay_out(state: dict[str, Node], folder: Path) -> None:
    for path, node in sorted(state.items()):
        if node.kind is EntryKind.DIRECTORY:
            (folder / path).mkdir()
        elif node.kind is EntryKind.LINK:
            (folder / path).symlink_to(node.target)
        else:
            (folder / path).write_text(node.text)
            (folder / path).chmod(0o755 if node.executable else 0o644)


def read_back(folder: Path) -> dict[str, Node]:
    state = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root) / name
            relative = str(path.relative_to(folder))
            if path.is_symlink():
                state[relative] = Node(EntryKind.LINK, target=str(path.readlink()))
            elif path.is_dir():
                state[relative] = FOLDER
            else:
                executable = bool(path.stat().st_mode & stat.S_IXUSR)
                state[relative] = Node(EntryKind.FILE, path.read_text(), executable)
    return state


def bash(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, env=environment, check=False)


def instance(family: str, number: int) -> tuple[dict[str, str], dict[str, Node]]:
    skill = SKILLS[family]
    names = Names(partition("terminal", 8)[0][0], random.Random(f"{family} {number}"))
    slots = {slot: names.fresh() for slot in skill.slots}
    return slots, {**bystanders(names), **skill.prepare(slots, names)}


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("family", SKILLS)
def test_the_reference_command_reaches_the_modelled_state_in_silence(family: str, number: int, tmp_path: Path) -> None:
    skill = SKILLS[family]
    slots, start = instance(family, number)
    lay_out(start, tmp_path)
    done = bash(skill.command.format_map(slots), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    expected = skill.apply(slots, start)
    assert read_back(tmp_path) == expected
    assert expected != start


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("family", SKILLS)
def test_no_near_miss_reaches_the_modelled_state(family: str, number: int, tmp_path: Path) -> None:
    skill = SKILLS[family]
    slots, start = instance(family, number)
    for place, command in enumerate(skill.near_misses):
        folder = tmp_path / str(place)
        folder.mkdir()
        lay_out(start, folder)
        bash(command.format_map(slots), folder)
        assert read_back(folder) != skill.apply(slots, start), command


@pytest.mark.parametrize("family", SKILLS)
def test_words_are_short_lower_case_and_never_names(family: str) -> None:
    skill = SKILLS[family]
    syllables = set(SYLLABLES)
    for text in (*skill.clauses, skill.command):
        assert text == text.lower() and "  " not in text and text.strip() == text
        for word in NAME.findall(re.sub(r"\{\w+\}", "", text)):
            named = word[:2] in syllables and word[2:] in syllables
            assert not named or not any(word in pool for pools in partition("terminal", 8) for pool in pools), word
        assert set(re.findall(r"\{(\w+)\}", text)) == set(skill.slots)
    assert len(skill.clauses) == len(set(skill.clauses)) >= 2
