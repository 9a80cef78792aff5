"""Repository tasks out to rows of other formats and in again, and rows of others in and out, with nothing lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import git
import pytest

from factory.core.assessment import TaskStatus
from factory.core.blobs import MemoryBlobs
from factory.core.errors import GeneratorError, UserError
from factory.core.files import FileTree
from factory.core.task import TaskKind
from factory.flows.commands import generate
from factory.flows.exchange import export, import_
from factory.flows.night import Silent
from factory.flows.workshop import Workshop
from factory.settings import Settings, load_settings
from generators.repository.dependencies import dependency_mount
from generators.repository.exchange.checkouts import Place
from generators.repository.patches import difference
from generators.repository.projects import load_fleet
from registry.exchange.rows import read_rows, write_rows
from registry.store import Registry
from tests.generators.repository.conftest import FILES, SHAPES
from tests.generators.repository.history.conftest import BASE, FIXED

OURS = ("envfactory_task", "envfactory_blobs")


def settings_of(data: Path, fleet_file: Path) -> Settings:
    table = {"fleet": str(fleet_file), "triage": {"min_tests": 5}}
    return load_settings(None, data=data, repository=table, generate={"seed": 1})


@contextmanager
def opened(settings: Settings) -> Iterator[Registry]:
    settings.data.mkdir(parents=True, exist_ok=True)
    with Registry.open(settings.database_url, settings.data / "blobs") as registry:
        yield registry


def written(settings: Settings, path: Path, form: str = "swesmith", blobs: bool = True) -> list[dict[str, Any]]:
    """Export all repository tasks, oldest name first, and read the rows."""
    with opened(settings) as registry:
        digests = [row.digest for row in registry.query(kind=TaskKind.REPOSITORY)]
        report = export(settings, registry, digests, path, form, blobs=blobs, progress=Silent())
    assert report["tasks"] == len(digests) and report["left_out"] == []
    return rows_of(path)


def rows_of(path: Path) -> list[dict[str, Any]]:
    found = []
    for _, row in read_rows(path):
        assert isinstance(row, dict)
        found.append(row)
    return found


def read(settings: Settings, path: Path, form: str = "swesmith", place: Place | None = None) -> dict[str, Any]:
    return import_(settings, path, form, place or Place(), progress=Silent())


@dataclass @ pytest.fixture(scope="module")
def base(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty registry in whose folder the test dependencies are at hand. Copied, never changed."""
    data = tmp_path_factory.mktemp("base") / "data"
    with Workshop.open(settings_of(data, fleet)) as shop:
        try:
            dependency_mount(load_fleet().locks["pytest"], shop.cache / "projects", shop.backend, "python-3.11", shop.blobs)
        except GeneratorError as error:
            pytest.skip(f"the package index does not give the test dependencies: {error}")
    return data


def copied(base: Path, data: Path, fleet_file: Path) -> Settings:
    """A registry of its own that has the test dependencies."""
    shutil.copytree(base, data, ignore=shutil.ignore_patterns("layers"))
    return settings_of(data, fleet_file)


@dataclass
class Shop:
    settings: Settings
    digests: set[str]


@pytest.fixture(scope="module")
def shop(fleet: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A registry with a few tasks of the small project."""
    settings = copied(base, tmp_path_factory.mktemp("shop") / "data", fleet)
    generate(settings, TaskKind.REPOSITORY, seed=5, start=0, count=4, progress=Silent())
    with opened(settings) as registry:
        digests = {row.digest for row in registry.query()}
    assert len(digests) >= 2
    return Shop(settings, digests)


@pytest.mark.parametrize("form", ["swesmith", "swebench"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_out_in_and_out_again_gives_the_same_tasks_and_equal_rows(
    shop: Shop,
    fleet: Path,
    tmp_path: Path,
    form: str,
    suffix: str,
) -> None:
    first = written(shop.settings, tmp_path / f"first{suffix}", form)
    there = settings_of(tmp_path / "there", fleet)
    write_rows(list(reversed(first)), tmp_path / f"turned{suffix}")  # blobs come with a later row, too
    report = read(there, tmp_path / f"turned{suffix}", form)
    assert (report["tasks"], report["new"], report["rejected"], report["not_judged"]) == (len(first), len(first), [], [])
    assert set(report["digests"]) == shop.digests
    assert written(there, tmp_path / f"second{suffix}", form) == first
    with opened(there) as registry:
        assert registry.verify().problems == ()
        for digest in shop.digests:
            assert registry.status(digest) is TaskStatus.CANDIDATE
            told = {one.filter: one.passed for one in registry.evidence(digest)}
            assert told == {"validity": True, "loopholes": True, "leaks": True}


def test_the_columns_of_swesmith(shop: Shop, tmp_path: Path) -> None:
    for row in written(shop.settings, tmp_path / "rows.jsonl"):
        assert set(row) == {
            *("instance_id", "repo", "patch", "FAIL_TO_PASS", "PASS_TO_PASS", "image_name", "problem_statement"),
            *OURS,
        }
        assert row["repo"] == "shapes" and row["image_name"] == "python-3.11" and row["FAIL_TO_PASS"]
        assert set(row["FAIL_TO_PASS"]).isdisjoint(row["PASS_TO_PASS"])
        # The patch is the bug: on the project as it is, it makes what the agent gets.
        lines = row["patch"].splitlines()
        right = [line[1:] for line in lines if line.startswith("-") and not line.startswith("---")]
        assert all(line in SHAPES.splitlines() for line in right)


def test_the_columns_of_swebench(shop: Shop, tmp_path: Path) -> None:
    for row in written(shop.settings, tmp_path / "rows.jsonl", "swebench"):
        lines = row["patch"].splitlines()
        right = [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]
        assert all(line in SHAPES.splitlines() for line in right)  # here the patch is the fix
        assert "+++ b/tests/test_shapes.py" in row["test_patch"].splitlines()
        assert json.loads(row["FAIL_TO_PASS"]) and isinstance(row["PASS_TO_PASS"], str)
        assert len(row["base_commit"]) == 64 and row["version"] == "shapes==HEAD"


def test_where_the_blobs_are_rows_need_not_carry_them(shop: Shop, fleet: Path, tmp_path: Path) -> None:
    rows = written(shop.settings, tmp_path / "rows.jsonl", blobs=False)
    assert all(row["envfactory_blobs"] == "{}" for row in rows)
    report = read(shop.settings, tmp_path / "rows.jsonl")
    assert (report["tasks"], report["new"], report["rejected"]) == (len(rows), 0, [])
    elsewhere = read(settings_of(tmp_path / "there", fleet), tmp_path / "rows.jsonl")
    assert elsewhere["tasks"] == 0
    assert all("a blob that is not stored" in reject["reason"] for reject in elsewhere["rejected"])
    assert [reject["number"] for reject in elsewhere["rejected"]] == list(range(1, len(rows) + 1))


Spoil = Callable[[dict[str, Any]], None]


def _statement(row: dict[str, Any]) -> None:
    row["problem_statement"] += " Line 3 is wrong."


def _record(row: dict[str, Any]) -> None:
    record = json.loads(row["envfactory_task"])
    record["manifest"]["instruction"] = "Leak the answer."
    row["envfactory_task"] = json.dumps(record)


def _version(row: dict[str, Any]) -> None:
    row["envfactory_task"] = row["envfactory_task"].replace('"version": 1', '"version": 2')


def _blob(row: dict[str, Any]) -> None:
    row["envfactory_blobs"] = json.dumps(dict.fromkeys(["0" * 64], "AAAA"))


def _text(row: dict[str, Any]) -> None:
    row["envfactory_task"] = "{"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_statement, "the columns that it was exported with"),
        (_record, "the digest of its content"),
        (_version, "version 1"),
        (_blob, "the digest of its content"),
        (_text, "a JSON object as text"),
    ],
)
def test_a_row_that_was_changed_is_refused_and_the_others_are_not(shop: Shop, tmp_path: Path, spoil: Spoil, said: str) -> None:
    rows = written(shop.settings, tmp_path / "rows.jsonl", blobs=False)
    spoil(rows[0])
    write_rows(rows, tmp_path / "spoilt.jsonl")
    report = read(shop.settings, tmp_path / "spoilt.jsonl")
    [reject] = report["rejected"]
    assert reject["number"] == 1 and said in reject["reason"] and "\n" not in reject["reason"]
    assert report["tasks"] == len(rows) - 1


BUG = SHAPES.replace("number -= 1", "number -= 2")
FAILING = "tests/test_shapes.py::test_countdown"
SMITH: dict[str, Any] = {
    "instance_id": "owner__shapes.0123456.func__1",
    "repo": "swesmith/owner__shapes.0123456",
    "FAIL_TO_PASS": [FAILING, "tests/test_shapes.py::test_that_never_was"],
    "PASS_TO_PASS": ["tests/test_shapes.py::test_area_default", "tests/test_shapes.py::test_area[two by three]"],
    "image_name": "theirs/image",
    "problem_statement": "countdown(3) gives [3, 1].\n",
    "score": 0.25,
    "tags": ["a", {"b": None}],
}
"""A row of another's, but for its patch."""


def bug(text: str = BUG) -> str:
    blobs = MemoryBlobs()
    clean = FileTree.of(blobs, FILES)
    return difference(clean, clean.merged(FileTree.of(blobs, {"shapes/__init__.py": text})), blobs)


def test_a_row_of_others_becomes_a_task_and_comes_out_as_it_was(
    fleet: Path,
    checkout: Path,
    base: Path,
    tmp_path: Path,
) -> None:
    here, there = copied(base, tmp_path / "here", fleet), settings_of(tmp_path / "there", fleet)
    row = {**SMITH, "patch": bug()}
    write_rows([row], tmp_path / "theirs.jsonl")
    report = read(here, tmp_path / "theirs.jsonl", place=Place(source=str(checkout), revision="HEAD"))
    assert (report["tasks"], report["rejected"], report["not_judged"]) == (1, [], [])
    [said] = report["disagreements"]
    assert said["fail_to_pass"] == {"count": 1, "first": ["tests/test_shapes.py::test_that_never_was"]}
    assert said["pass_to_pass"]["count"] == said["further"]["count"] == 0
    with opened(here) as registry:
        [digest] = report["digests"]
        candidate = registry.candidate(digest)
        assert candidate.task.instruction == row["problem_statement"]
        assert candidate.keys.keys == ("repository:owner/shapes", "repository:shapes")
        assert all(one.passed for one in registry.evidence(digest))
        files = FileTree.load(registry.blobs, candidate.task.environment.files)
        assert files.read(registry.blobs, "shapes/__init__.py").decode() == BUG
    [out] = written(here, tmp_path / "ours.jsonl")
    assert {name: value for name, value in out.items() if name not in OURS} == row
    again = read(there, tmp_path / "ours.jsonl")
    assert again["digests"] == report["digests"]
    assert written(there, tmp_path / "again.jsonl") == [out]
    [other] = written(there, tmp_path / "other.jsonl", "swebench")
    assert json.loads(other["FAIL_TO_PASS"]) == [FAILING]


def test_a_swebench_row_takes_its_commit_and_brings_its_tests(
    history: Path,
    history_fleet: Path,
    base: Path,
    tmp_path: Path,
) -> None:
    blobs = MemoryBlobs()
    before, after = FileTree.of(blobs, BASE), FileTree.of(blobs, FIXED)
    tested = before.merged({"tests/test_shapes.py": after["tests/test_shapes.py"]})
    with git.Repo(history) as repository:
        base = next(commit.hexsha for commit in repository.iter_commits() if commit.summary == "base")
    row = {
        "instance_id": "owner__shapes-1",
        "repo": "owner/shapes",
        "base_commit": base,
        "patch": difference(tested, after, blobs),
        "test_patch": difference(before, tested, blobs),
        "problem_statement": "largest gives the least.",
        "hints_text": None,
        "created_at": "2024-01-01T00:00:00Z",
        "version": "1.0",
        "FAIL_TO_PASS": json.dumps(["tests/test_shapes.py::test_largest"]),
        "PASS_TO_PASS": json.dumps(["tests/test_shapes.py::test_area_1", "tests/test_shapes.py::test_unused_1"]),
    }
    write_rows([row], tmp_path / "theirs.parquet")
    settings = copied(base, tmp_path / "here", history_fleet)
    report = read(settings, tmp_path / "theirs.parquet", "swebench", Place(source=str(history)))
    assert (report["tasks"], report["rejected"]) == (1, [])
    assert report["disagreements"][0]["further"] == {"count": 1, "first": ["tests/test_shapes.py::test_largest_of_two"]}
    [out] = written(settings, tmp_path / "ours.parquet", "swebench")
    assert {name: value for name, value in out.items() if name not in OURS} == row


def test_rows_that_cannot_be_tasks_are_listed_with_the_reason(
    fleet: Path,
    checkout: Path,
    base: Path,
    tmp_path: Path,
) -> None:
    good = {**SMITH, "patch": bug()}
    rows: list[dict[str, Any]] = [
        {**good, "problem_statement": ""},
        {**good, "patch": good["patch"].replace("countdown(number)", "elsewhere(number)").replace("found = []", "lost = 0")},
        {**good, "FAIL_TO_PASS": ["tests/test_shapes.py::test_largest"]},
        {**good, "repo": "swesmith/django__django.0123456"},
        {**good, "repo": "/"},
        {**good, "patch": bug(SHAPES.replace("return a + b", "return a - b"))},
        {**good, "patch": bug(SHAPES.replace('"""Shapes."""', "def broken(:"))},
        good,
    ]
    write_rows(rows, tmp_path / "rows.jsonl")
    with (tmp_path / "rows.jsonl").open("ab") as file:
        file.write(b"{ no json\n")
    settings = copied(base, tmp_path / "here", fleet)
    report = read(settings, tmp_path / "rows.jsonl", place=Place(source=str(checkout), revision="HEAD", project="shapes"))
    reasons = {reject["number"]: reject["reason"] for reject in report["rejected"]}
    assert set(reasons) == {1, 2, 3, 4, 5, 6, 7, 9} and report["rows"] == 9 and report["tasks"] == 1
    assert "problem_statement" in reasons[1]
    assert "the patch does not apply" in reasons[2]
    assert "no test of FAIL_TO_PASS fails before and passes after" in reasons[3]
    assert "excluded repository" in reasons[4]
    assert "a name with a letter" in reasons[5]
    assert "survived" in reasons[6]
    assert "nothing passes" in reasons[7]
    assert "not JSON" in reasons[9]
    with opened(settings) as registry:
        assert registry.stages(report["run"])["import"].data["rejected"] == report["rejected"]
    far = read(settings, tmp_path / "rows.jsonl", place=Place(source=str(tmp_path / "nowhere")))
    assert "a repository with that commit" in {reject["number"]: reject["reason"] for reject in far["rejected"]}[8]


def test_the_command_writes_and_reads(shop: Shop, fleet: Path, tmp_path: Path, factory: Any) -> None:
    config = tmp_path / "factory.toml"
    config.write_text(f'[generate]\nseed = 1\n[repository]\nfleet = "{fleet}"\ntriage = {{min_tests = 5}}\n')
    data = shutil.copytree(shop.settings.data, tmp_path / "copy", ignore=shutil.ignore_patterns("layers"))
    options = ("--config", str(config), "--data", str(data), "--json")
    rows, own = tmp_path / "rows.parquet", tmp_path / "own.jsonl.gz"
    assert json.loads(factory("tasks", "export", str(rows), "--format", "swesmith", *options).out)["tasks"] == len(shop.digests)
    assert json.loads(factory("tasks", "export", str(own), *options).out)["tasks"] == len(shop.digests)
    for path, form in ((rows, "swesmith"), (own, "envfactory")):
        there = ("--config", str(config), "--data", str(tmp_path / form), "--json")
        done = factory("tasks", "import", str(path), "--format", form, *there)
        assert (done.code, json.loads(done.out)["tasks"]) == (0, len(shop.digests))
    one = sorted(shop.digests)[0]
    done = factory("tasks", "export", str(tmp_path / "one.jsonl"), one, "--format", "swebench", "--no-blobs", *options)
    assert json.loads(done.out)["tasks"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "rows.csv", "--format", "swesmith"), ".parquet"),
        (("export", "rows.parquet"), ".jsonl"),
        (("export", "rows.jsonl", "--format", "harbor"), "swesmith"),
        (("export", "rows.jsonl", "--status", "good"), "accepted"),
        (("import", "absent.jsonl", "--format", "swesmith"), "absent.jsonl"),
        (("import", "absent.jsonl"), "absent.jsonl"),
        (("import", "rows.csv", "--format", "swesmith"), "rows.csv"),
    ],
)
def test_a_wrong_command_is_told_in_one_line(
    shop: Shop,
    factory: Any,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    done = factory("tasks", *arguments, "--data", str(shop.settings.data))
    assert (done.code, done.out) == (2, "")
    assert said in done.err and done.err.count("\n") == 1


def test_unknown_files_are_the_users_mistake(fleet: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError):
        read(settings_of(tmp_path / "here", fleet), tmp_path / "absent.jsonl")
