"""Two hundred tasks on both back ends: the same verdicts, the same end trees, the same observations.

Terminal, database and repository tasks of one seed. Each is replayed with its reference solution, with nothing, and spoilt in
two ways. Nothing is normalised: what differs between the back ends (docs/decisions/0002-sandboxes.md, section Parity) is not
what such tasks show; `test_parity_looks.py` looks at that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import pytest

from factory.agent.environment import Step, replay
from factory.core.action import Action
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

pytestmark = [pytest.mark.docker, pytest.mark.long]

SEED = 20_261
PIECE = 5
"""Tasks of one test."""
PIECES = {TaskKind.TERMINAL: 16, TaskKind.DATABASE: 16, TaskKind.REPOSITORY: 8}
"""Tests of each kind: 200 tasks in all."""
WORKERS = 3
"""Episodes at once: an engine waits more than it works."""
PROJECTS = ("schedule", "semver")

LOOK = {
    TaskKind.TERMINAL: Action("bash", {"command": "ls -p; find . -type f | sort | head -50; cat nothing; umask; false"}),
    TaskKind.DATABASE: Action("sql", {"query": "select name, sql from sqlite_master order by name; select nothing"}),
    TaskKind.REPOSITORY: Action("edit", {"path": "nothing", "line": "1", "text": "x"}),
}
"""A turn that changes nothing and shows something, an error among it."""
RUIN = {
    TaskKind.TERMINAL: Action("bash", {"command": "rm -rf -- *; echo ruin > ruin.txt; ls -A; no-such-program"}),
    TaskKind.DATABASE: Action(
        "sql", {"query": "create table ruin (x); insert into ruin values (1.5), (null); select * from ruin; x"}
    ),
    TaskKind.REPOSITORY: Action(
        "bash", {"command": "find . -name '*.py' -exec sed -i 's/return .*/return None/' {} +; ls | sort"}
    ),
}
"""A turn that spoils any work."""


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> FileBlobs:
    return FileBlobs(tmp_path_factory.mktemp("blobs"))


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Backend, Backend]]:
    docker = docker_backend(tmp_path_factory.mktemp("docker"))
    bubblewrap = bubblewrap_backend(tmp_path_factory.mktemp("bubblewrap"))
    yield bubblewrap, docker
    bubblewrap.close()
    docker.close()


@pytest.fixture(scope="module")
def repository_tasks(
    blobs: FileBlobs, backends: tuple[Backend, Backend], tmp_path_factory: pytest.TempPathFactory
) -> Sequence[Task]:
    config = RepositoryConfig(projects=PROJECTS)
    generator = RepositoryGenerator(config, cache=tmp_path_factory.mktemp("projects"), backend=backends[0])
    wanted = PIECE * PIECES[TaskKind.REPOSITORY]
    return [one.task for one in generator.generate(blobs, seed=SEED, start=0, count=3 * wanted // 2)]


@pytest.fixture(
    params=[(kind, piece) for kind, pieces in PIECES.items() for piece in range(pieces)], ids=lambda one: f"{one[0]}-{one[1]}"
)
def tasks(request: pytest.FixtureRequest, blobs: FileBlobs) -> Sequence[Task]:
    kind, piece = request.param
    begin = piece * PIECE
    if kind is TaskKind.REPOSITORY:
        made: Sequence[Task] = request.getfixturevalue("repository_tasks")[begin : begin + PIECE]
    else:
        generator = TerminalGenerator() if kind is TaskKind.TERMINAL else DatabaseGenerator()
        made = [one.task for one in generator.generate(blobs, seed=SEED, start=begin, count=PIECE)]
    assert len(made) == PIECE
    return made


def test_the_same_verdicts_and_observations(tasks: Sequence[Task], blobs: FileBlobs, backends: tuple[Backend, Backend]) -> None:
    def compare(case: tuple[Task, str, Sequence[Action], bool]) -> None:
        task, name, actions, solved = case
        here, there = (played(task, actions, backend, blobs) for backend in backends)
        assert here == there, (task.digest, name)
        assert here["solved"] is solved, (task.digest, name)

    with ThreadPoolExecutor(WORKERS) as pool:
        assert len(list(pool.map(compare, [case for task in tasks for case in variants(task, blobs)]))) == 4 * PIECE


def variants(task: Task, blobs: FileBlobs) -> list[tuple[Task, str, Sequence[Action], bool]]:
    """Reference solution, nothing, a solution without its last action, and one with a ruin at its end; solved or not."""
    gold = Demonstration.from_manifest(get_json(blobs, task.solution)).actions
    assert gold[-1].tool == "submit"
    *work, submit = gold
    look, ruin = LOOK[task.kind], RUIN[task.kind]
    return [
        (task, "gold", gold, True),
        (task, "nothing", (), False),
        (task, "cut", (look, *work[:-1], submit), False),
        (task, "ruined", (*work, ruin, submit), False),
    ]


def played(task: Task, actions: Sequence[Action], backend: Backend, blobs: FileBlobs) -> dict[str, Any]:
    """Everything that must be the same: observations, end, verdicts, and the tree that was graded."""
    seen: list[Step] = []
    outcome = replay(task, actions, backend, blobs, watch=seen.append)
    assert outcome.kind is OutcomeKind.SCORED, outcome.fault
    assert outcome.verdict is not None and outcome.held_out is not None
    return {
        "observations": [observation(step) for step in seen],
        "reason": outcome.reason,
        "solved": solved_by(outcome),
        "checks": [[(one.name, one.state) for one in verdict.checks] for verdict in (outcome.verdict, outcome.held_out)],
        "end": outcome.verdict.end,
    }


def solved_by(outcome: Outcome) -> bool:
    return outcome.solved and outcome.held_out is not None and outcome.held_out.passed


def observation(step: Step) -> dict[str, Any]:
    return {"valid": step.valid, "over": step.over, **(asdict(step.observation) if step.observation else {})}
