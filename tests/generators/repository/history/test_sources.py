"""Entries of a fleet's history, and the changes that they give."""

from __future__ import annotations

from pathlib import Path

import git
import pytest

from factory.core.blobs import MemoryBlobs
from factory.core.errors import UserError
from generators.repository.history.config import HistoryConfig
from generators.repository.history.sources import changes, load, load_history
from generators.repository.projects import load_fleet
from tests.generators.repository.history.conftest import DOCUMENTED, FIXED, MOVED

CONFIG = HistoryConfig()


def test_commits_that_change_sources_are_changes_oldest_first(history: Path, history_fleet: Path, tmp_path: Path) -> None:
    [source] = load_history(history_fleet, load_fleet(history_fleet))
    found = changes(source, CONFIG, tmp_path)
    assert [change.subject for change in found] == [
        "largest was the least",
        "two repairs",
        "perimeter",
        "countdown ends at one",
        "points",
    ]
    with git.Repo(history) as repository:
        assert found[-1].after == repository.head.commit.hexsha
        assert found[-1].before == repository.head.commit.parents[0].hexsha
    newest = changes(source, HistoryConfig(commits=2), tmp_path)
    assert [change.subject for change in newest] == ["points"]
    before, after = load(found[-1], tmp_path, blobs := MemoryBlobs())
    assert {path: before.read(blobs, path).decode() for path in before} == DOCUMENTED
    assert {path: after.tree.read(blobs, path).decode() for path in after.tree} == MOVED


def test_a_range_of_commits(history: Path, history_fleet: Path, tmp_path: Path) -> None:
    text = history_fleet.read_text() + 'first = "HEAD~5"\nlast = "HEAD~3"\n'
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    [source] = load_history(path, load_fleet(path))
    assert [change.subject for change in changes(source, CONFIG, tmp_path)] == ["two repairs", "perimeter"]


def test_consecutive_releases_are_changes(history_fleet: Path, tmp_path: Path) -> None:
    releases = ", ".join(f'{{version = "1.{number}", sha256 = "{number}"}}' for number in range(3))
    head = history_fleet.read_text().partition("[[history]]")[0]
    path = tmp_path / "fleet.toml"
    path.write_text(f'{head}[[history]]\nproject = "shapes"\nreleases = [{releases}]\n')
    [source] = load_history(path, load_fleet(path))
    found = changes(source, CONFIG, tmp_path)
    assert [(change.before, change.after) for change in found] == [("1.0", "1.1"), ("1.1", "1.2")]
    assert found[0].described == "shapes==1.0" and found[0].operator == "history_release"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('project = "shapes"', "either releases or git"),
        ('project = "shapes"\ngit = "x"\nreleases = [{version = "1", sha256 = "2"}]', "either releases or git"),
        ('project = "shapes"\nreleases = [{version = "1", sha256 = "2"}]', "two or more releases"),
        ('project = "shapes"\nreleases = [{version = "1"}]', "the fields of a history entry"),
        ('project = "shapes"\ngit = "x"\nbranch = "y"', "the fields of a history entry"),
        ('project = "other"\ngit = "x"', "one of shapes"),
        ('git = "x"', "one of shapes"),
    ],
)
def test_a_wrong_entry_is_the_users_mistake(history_fleet: Path, tmp_path: Path, entry: str, said: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(history_fleet.read_text().partition("[[history]]")[0] + f"[[history]]\n{entry}\n")
    with pytest.raises(UserError, match=said):
        load_history(path, load_fleet(path))


@pytest.mark.parametrize(
    "entry", ['git = "/nowhere/at/all"', 'git = "{history}"\nlast = "no-such-branch"', 'git = "{history}"\nfirst = "x"']
)
def test_a_repository_that_is_not_there_is_the_users_mistake(
    history: Path, history_fleet: Path, tmp_path: Path, entry: str
) -> None:
    path = tmp_path / "fleet.toml"
    text = entry.format(history=history)
    path.write_text(history_fleet.read_text().partition("[[history]]")[0] + f'[[history]]\nproject = "shapes"\n{text}\n')
    [source] = load_history(path, load_fleet(path))
    with pytest.raises(UserError) as caught:
        changes(source, CONFIG, tmp_path)
    assert "\n" not in str(caught.value)


def test_numbers_that_are_changes_are_spread_and_leave_the_others_as_they_are() -> None:
    config = HistoryConfig(percent=25)
    taken = [number for number in range(40) if config.takes(number)]
    assert taken == [3, 7, 11, 15, 19, 23, 27, 31, 35, 39]
    assert [config.index(number) for number in taken] == list(range(10))
    assert not any(HistoryConfig().takes(number) for number in range(100))
    every = HistoryConfig(percent=100)
    assert [every.index(number) for number in range(9) if every.takes(number)] == list(range(9))


@pytest.mark.parametrize("percent", range(0, 101, 7))
def test_each_change_is_taken_once(percent: int) -> None:
    config = HistoryConfig(percent=percent)
    indices = [config.index(number) for number in range(300) if config.takes(number)]
    assert indices == list(range(300 * percent // 100))


@pytest.mark.parametrize("fields", [{"percent": 101}, {"percent": -1}, {"max_files": 0}, {"written_tests": -1}, {"repeats": 0}])
def test_a_wrong_config_is_the_users_mistake(fields: dict[str, int]) -> None:
    with pytest.raises(UserError, match=next(iter(fields))):
        HistoryConfig(**fields)  # type: ignore[arg-type]


def test_the_state_of_a_commit_is_read_whole(history_fleet: Path, tmp_path: Path) -> None:
    [source] = load_history(history_fleet, load_fleet(history_fleet))
    first = changes(source, CONFIG, tmp_path)[0]
    _, checkout = load(first, tmp_path, blobs := MemoryBlobs())
    assert {path: checkout.tree.read(blobs, path).decode() for path in checkout.tree} == FIXED
    assert checkout.project.release == f"shapes=={first.after}"
