"""A fleet of small folders in real sandboxes: one gives tasks, one is refused, one is not there; a kill in between."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factory.core.assessment import Evidence
from factory.core.blobs import MemoryBlobs
from factory.core.errors import GeneratorError
from factory.flows.fleet import generate_fleet
from factory.flows.making import fates_of
from factory.flows.night import Silent
from factory.report.collect import figures
from factory.settings import Settings, load_settings
from filters.validity import Judged
from generators.repository.dependencies import dependency_mount
from generators.repository.projects import load_fleet
from generators.terminal.generator import TerminalGenerator
from registry.runs import RunState
from registry.store import Registry
from sandboxes.backends import open_backend
from tests.generators.repository.conftest import FILES

from ..cli.command import ROOT, Inside, environment, factory
from .killing import select

__all__ = ["factory"]
COUNT = 30
"""Two parts of the one project that gives tasks."""
PROJECT = """
[[project]]
name = "{name}"
version = "1"
folder = "{folder}"
sources = ["shapes"]
tests = ["tests"]
licence = "MIT"
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet file of `nowhere`, `few` and `shapes`."""
    root = tmp_path_factory.mktemp("fleet")
    few = {**FILES, "tests/test_shapes.py": "from shapes import area\n\n\ndef test_area():\n    assert area(2, 3) == 6\n"}
    for name, files in (("shapes", FILES), ("few", few)):
        for path, text in files.items():
            (root / name / path).parent.mkdir(parents=True, exist_ok=True)
            (root / name / path).write_text(text)
    projects = "".join(PROJECT.format(name=name, folder=root / name) for name in ("nowhere", "few", "shapes"))
    lock = ",\n".join(f'"{line}"' for line in load_fleet().locks["pytest"])
    path = root / "fleet.toml"
    path.write_text(f"[locks]\npytest = [{lock}]\n{projects}")
    return path


@pytest.fixture(scope="module")
def config(fleet: Path) -> Path:
    path = fleet.with_name("factory.toml")
    path.write_text("[repository.triage]\nmin_tests = 5\n")
    return path


def settings_of(config: Path, data: Path) -> Settings:
    return load_settings(config, data=data)


@pytest.fixture(scope="module")
def whole(fleet: Path, config: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, dict[str, Any]]:
    """What an uninterrupted run gives."""
    settings = settings_of(config, tmp_path_factory.mktemp("whole") / "data")
    with closing(open_backend("bubblewrap", cache=settings.data / "cache" / "layers")) as backend:
        try:
            blobs = MemoryBlobs()
            dependency_mount(load_fleet().locks["pytest"], tmp_path_factory.mktemp("tried"), backend, "python-3.11", blobs)
        except GeneratorError as error:
            pytest.skip(f"the package index does not give the test dependencies: {error}")
    return settings, generate_fleet(settings, fleet, seed=1, start=0, count=COUNT, progress=Silent())


def tried(found: dict[str, Any]) -> dict[str, Any]:
    """Everything but what a clock measured."""
    rows = [{**one, "seconds": None, "suite_ms": None} for one in found["projects"]]
    return {**found, "projects": rows}


@pytest.mark.slow
def test_a_refused_project_stops_no_other(whole: tuple[Settings, dict[str, Any]]) -> None:
    settings, found = whole
    few, nowhere, shapes = found["projects"]
    assert few["refused"] == "few==1 is refused: 1 stable tests of 1, fewer than 5" and few["edits"] == 0
    assert "nowhere" in nowhere["refused"] and "a folder" in nowhere["refused"]
    assert shapes["refused"] == "" and shapes["tests"] == 12
    fates = Counter(shapes["fates"])
    assert shapes["valid"] + fates.total() == COUNT
    assert shapes["edits"] == COUNT - fates["no more sites"] and shapes["valid"] >= 15 and fates["survived"] >= 1
    assert sum(one["valid"] for one in found["operators"]) == shapes["valid"] == found["all"]["valid"]
    with Registry.open(settings.database_url, settings.data / "blobs") as registry:
        passed = [row for row in registry.query() if all(one.passed for one in registry.evidence(row.digest))]
        assert len(passed) == shapes["valid"]
        assert registry.run(found["run"]).state is not RunState.FINISHED  # the folder may be there tomorrow
        told = figures(registry, settings)["funnel"]["yields"]
    assert {name: told[name] for name in ("projects", "operators", "all")} == {
        name: found[name] for name in ("projects", "operators", "all")
    }


@pytest.mark.slow
def test_the_same_again_does_nothing_again(whole: tuple[Settings, dict[str, Any]], fleet: Path) -> None:
    settings, found = whole
    statement = "SELECT stage, updated_at FROM run_stages WHERE stage LIKE 'make %' OR stage IN ('triage few', 'triage shapes')"
    before = select(settings.data, statement)
    again = generate_fleet(settings, fleet, seed=1, start=0, count=COUNT, progress=Silent())
    assert len(before) == 4 and select(settings.data, statement) == before
    assert tried(again) == tried(found)


@pytest.mark.slow
def test_a_killed_run_goes_on_and_gives_the_same(
    whole: tuple[Settings, dict[str, Any]], fleet: Path, config: Path, tmp_path: Path, factory: Inside
) -> None:
    data, words = tmp_path / "data", ("generate", "repository", "--fleet", str(fleet), "--seed", "1", "--count", str(COUNT))
    arguments = (*words, "--config", str(config), "--data", str(data))
    command = [sys.executable, "-m", "factory.cli.main", *arguments]
    statement = "SELECT stage FROM run_stages WHERE stage LIKE 'make %'"
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as running:
        while running.poll() is None:
            if (data / "registry.db").exists() and _asked(data, statement):
                running.kill()
            time.sleep(0.05)
    assert [stage for (stage,) in select(data, statement)] == ["make repository 0-24 of shapes"]
    done = factory(*arguments, "--json")
    assert done.code == 0, done.err
    settings, found = whole
    assert tried(json.loads(done.out)) == tried(found)
    digests = "SELECT digest FROM tasks ORDER BY digest"
    assert select(data, digests) == select(settings.data, digests)
    table = factory(*arguments).out
    assert "few: few==1 is refused: 1 stable tests of 1" in table
    first = {line.split()[0] for line in table.splitlines() if line}
    assert first >= {"project", "few", "nowhere", "shapes", "all", "operator"}


def _asked(data: Path, statement: str) -> bool:
    """Whether the statement finds something; not while the tables are being made."""
    import sqlite3

    try:
        return bool(select(data, statement))
    except sqlite3.OperationalError:
        return False


def test_a_task_that_a_filter_refuses_has_the_filter_as_its_fate() -> None:
    made = list(TerminalGenerator().generate(MemoryBlobs(), seed=1, start=0, count=4))
    found = [replace(one, origin=replace(one.origin, source="p==1", operator="off_by_one")) for one in made]
    right, wrong, lost, again = (one.task.digest for one in found)

    def said(digest: str, filter: str, passed: bool) -> Judged:
        evidence = Evidence(filter=filter, rule="", passed=passed, reason="" if passed else "no", data={})
        return Judged(task=digest, evidence=evidence)

    judged = [
        said(right, "validity", True),
        said(wrong, "validity", True),
        Judged(task=lost, evidence=None, fault="the sandbox was lost"),
        said(again, "validity", False),
        said(again, "loopholes", False),
        said(right, "loopholes", True),
        said(wrong, "leaks", False),
    ]
    told = Counter({("p", "off_by_one", "valid"): 4, ("p", "off_by_one", "hang"): 2})
    assert fates_of(told, found, judged) == {
        ("p", "off_by_one", "valid"): 1,
        ("p", "off_by_one", "hang"): 2,
        ("p", "off_by_one", "leaks"): 1,
        ("p", "off_by_one", "not judged"): 1,
        ("p", "off_by_one", "validity"): 1,
    }
