"""The same tasks on both back ends: gold and no-op get the same verdicts, check by check."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from factory.agent.environment import replay
from factory.core.blobs import get_json
from factory.core.demonstration import Demonstration
from factory.core.outcome import Outcome, OutcomeKind
from factory.core.task import Task, TaskKind
from generators.database import DatabaseGenerator
from generators.repository.config import RepositoryConfig
from generators.repository.generator import RepositoryGenerator
from generators.terminal import TerminalGenerator
from registry.blobs import FileBlobs
from sandboxes.contract import Backend
from tests.engines import bubblewrap_backend, docker_backend

pytestmark = [pytest.mark.docker, pytest.mark.slow]
TASKS = 10
PROJECTS = ("schedule", "semver")


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> FileBlobs:
    return FileBlobs(tmp_path_factory.mktemp("blobs"))


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    backend = docker_backend(tmp_path_factory.mktemp("docker"))
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def bubblewrap(docker: Backend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    backend = bubblewrap_backend(tmp_path_factory.mktemp("bubblewrap"))
    yield backend
    backend.close()


@pytest.fixture(scope="module", params=[TaskKind.TERMINAL, TaskKind.DATABASE, TaskKind.REPOSITORY], ids=str)
def tasks(
    request: pytest.FixtureRequest, blobs: FileBlobs, bubblewrap: Backend, tmp_path_factory: pytest.TempPathFactory
) -> list[Task]:
    if request.param is TaskKind.TERMINAL:
        return [one.task for one in TerminalGenerator().generate(blobs, seed=3, start=0, count=TASKS)]
    if request.param is TaskKind.DATABASE:
        return [one.task for one in DatabaseGenerator().generate(blobs, seed=3, start=0, count=TASKS)]
    config = RepositoryConfig(projects=PROJECTS)
    generator = RepositoryGenerator(config, cache=tmp_path_factory.mktemp("projects"), backend=bubblewrap)
    found = [one.task for one in generator.generate(blobs, seed=3, start=0, count=2 * TASKS)]
    assert len(found) >= TASKS
    return found[:TASKS]


def test_gold_and_noop_get_the_same_verdicts(tasks: list[Task], blobs: FileBlobs, docker: Backend, bubblewrap: Backend) -> None:
    for task in tasks:
        gold = Demonstration.from_manifest(get_json(blobs, task.solution)).actions
        for actions, solved in ((gold, True), ((), False)):
            here, there = (_told(replay(task, actions, backend, blobs)) for backend in (bubblewrap, docker))
            assert here == there
            assert here[0] is solved


def _told(outcome: Outcome) -> tuple[bool, list[tuple[str, str]], list[tuple[str, str]]]:
    assert outcome.kind is OutcomeKind.SCORED, outcome.fault
    assert outcome.verdict is not None and outcome.held_out is not None
    first, second = ([(check.name, check.state.value) for check in one.checks] for one in (outcome.verdict, outcome.held_out))
    return outcome.solved and outcome.held_out.passed, first, second
