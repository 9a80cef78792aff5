"""A registry with something in every covered table, and writing past every guard of its database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection, create_engine

from factory.core.assessment import TaskStatus
from factory.core.digest import Digest
from factory.core.policy import PolicyVersion
from registry.policies import Edge
from registry.store import Registry

from ..material import POLICY, VALID, assessment, candidate, trajectory

Past = Callable[..., None]


@dataclass(frozen=True)
class Full:
    """The registry, and its tasks: accepted and in train, accepted in a holdout, left train, a candidate, withdrawn."""

    registry: Registry
    digests: tuple[Digest, ...]


@pytest.fixture
def full(registry: Registry) -> Full:
    run = registry.begin_run("nightly", "2026-01-02", "c" * 64).id
    items = [candidate(registry.blobs, number) for number in range(5)]
    digests = tuple(registered.digest for registered in registry.register_many(items, run=run))
    registry.register(candidate(registry.blobs, 0, seed=8), run=run)
    registry.add_keys([(digests[0], "cluster:one")])
    registry.add_evidence_many([(digest, VALID) for digest in digests], run=run)
    changes = [(digest, TaskStatus.ACCEPTED, "") for digest in digests[:3]]
    registry.set_status_many(changes, run=run)
    registry.withdraw(digests[4], "licence")
    registry.add_policy(POLICY, path="/p", format="tiny")
    registry.add_policy(PolicyVersion(line="tiny", weights="b" * 64, step=1), path="/q", format="tiny", parent=POLICY.weights)
    registry.add_assessments([assessment(digests[0], 3), assessment(digests[1], 8)], run=run)
    registry.add_trajectories([trajectory(digests[0]), trajectory(digests[0], 1, solved=False)], purpose="assess", run=run)
    registry.link([Edge("b" * 64, digests[0], "trained on")])
    registry.seal_split("main", {digests[0]: "train", digests[1]: "holdout-families"})
    registry.assign("main", digests[2])
    registry.assign("main", digests[3])
    registry.leave_train("main", [digests[2]])
    registry.alias_set("best", digests[0], expected=None)
    registry.alias_set("best", digests[1], expected=digests[0])
    registry.exclude("my-eval", "ours")
    return Full(registry, digests)


@pytest.fixture
def past(registry: Registry) -> Iterator[Past]:
    """Runs SQL with every trigger and foreign key out of the way, and puts the triggers back: only rows change."""
    engine = create_engine(registry._database.url)

    def execute(*statements: str) -> None:
        with engine.begin() as connection:
            if not registry._database.embedded:
                connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
                _all(connection, statements)
                return
            triggers = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
            _all(connection, [f"DROP TRIGGER {name}" for name, _ in triggers])
            _all(connection, statements)
            _all(connection, [sql for _, sql in triggers])

    yield execute
    engine.dispose()


def _all(connection: Connection, statements: object) -> None:
    for statement in statements:  # type: ignore[attr-defined]
        connection.exec_driver_sql(statement)
