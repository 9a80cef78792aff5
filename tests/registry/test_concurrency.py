from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import text

from factory.core.assessment import TaskStatus
from registry.store import Registry
from tests.registry.material import POLICY, VALID, assessment, candidate, trajectory

CONTEXT = multiprocessing.get_context("spawn")


def _work(url: str, blobs: Path, numbers: list[int], batch: int) -> None:
    """Everything that a shard of a flow does to the registry, idempotently."""
    with Registry.open(url, blobs) as registry:
        run = registry.begin_run("nightly", "one", "c" * 64).id
        registry.add_policy(POLICY, path="/p", format="tiny")
        for start in range(0, len(numbers), batch):
            some = [candidate(registry.blobs, number, seed=number) for number in numbers[start : start + batch]]
            digests = [registered.digest for registered in registry.register_many(some, run=run)]
            registry.add_evidence_many([(digest, VALID) for digest in digests], run=run)
            registry.set_status_many([(digest, TaskStatus.ACCEPTED, "sound") for digest in digests], run=run)
            registry.add_assessments([assessment(digest, 3) for digest in digests], run=run)
            registry.add_trajectories([trajectory(digest) for digest in digests], purpose="assess", run=run)


def _start(url: str, blobs: Path, orders: list[list[int]], batch: int) -> list:
    workers = [CONTEXT.Process(target=_work, args=(url, blobs, numbers, batch)) for numbers in orders]
    for worker in workers:
        worker.start()
    return workers


def test_processes_that_write_the_same_at_once_lose_nothing_and_double_nothing(url: str, tmp_path: Path) -> None:
    numbers = list(range(30))
    orders = [numbers, numbers[::-1], random.Random(1).sample(numbers, 30)]
    workers = _start(url, tmp_path / "blobs", orders, batch=3)
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with Registry.open(url, tmp_path / "blobs") as registry:
        rows = registry.query(status=TaskStatus.ACCEPTED, line="tiny")
        assert [row.name for row in rows] == [f"terminal/rename+count/{number:04d}" for number in numbers]
        for row in rows:
            assert len(registry.origins(row.digest)) == 1
            assert registry.evidence(row.digest) == [VALID]
            assert [event.new for event in registry.status_log(row.digest)] == [TaskStatus.CANDIDATE, TaskStatus.ACCEPTED]
            assert registry.assessments(row.digest) == [assessment(row.digest, 3)]
        assert _acts(registry) == {"begin run": 1, "add policy": 1, "register": 30, "set status": 30}
        verified = registry.verify()
        assert (verified.tasks, verified.problems) == (30, ())


def _acts(registry: Registry) -> Counter[str]:
    """Entries of the trail by their act, without those of which there is one a transaction, however many there were."""
    acts = Counter(entry.action for entry in registry.audit_log())
    assert all(acts.pop(f"add {rows}") > 0 for rows in ("evidence", "assessments", "trajectories"))
    return acts


def _kills(url: str, folder: Path, rounds: int, seed: int) -> None:
    """Start two writers, kill them at a random moment, and look at the store; at the end let them finish."""
    draws = random.Random(seed)
    numbers = list(range(300))
    interrupted = 0
    for _ in range(rounds):
        workers = _start(url, folder, [numbers, numbers[::-1]], batch=7)
        time.sleep(draws.uniform(0.8, 2.2))
        for worker in workers:
            if worker.is_alive():
                os.kill(worker.pid, signal.SIGKILL)
                interrupted += 1
            worker.join()
        with Registry.open(url, folder) as registry:
            assert registry.verify().problems == ()
            if registry._database.embedded:
                with registry._database.read() as connection:
                    assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
            for row in registry.query(status=TaskStatus.ACCEPTED):
                assert registry.evidence(row.digest) == [VALID]
    assert interrupted > 0
    workers = _start(url, folder, [numbers, numbers[::-1]], batch=50)
    for worker in workers:
        worker.join()
    with Registry.open(url, folder) as registry:
        assert len(registry.query(status=TaskStatus.ACCEPTED)) == len(numbers)
        assert _acts(registry) == {"begin run": 1, "add policy": 1, "register": len(numbers), "set status": len(numbers)}
        assert registry.verify().problems == ()


@pytest.mark.slow
def test_killed_writers_leave_a_sound_store(url: str, tmp_path: Path) -> None:
    _kills(url, tmp_path / "blobs", rounds=1, seed=3)


@pytest.mark.long
def test_twenty_rounds_of_kills(url: str, tmp_path: Path) -> None:
    _kills(url, tmp_path / "blobs", rounds=20, seed=4)
