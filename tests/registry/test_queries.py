from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, insert, update

from factory.core.assessment import TaskState, TaskStatus
from factory.core.errors import UserError
from factory.core.policy import PolicyVersion
from factory.core.task import TaskKind
from registry.store import Registry
from registry.tables import assessments, evidence, origins, split_tasks, splits, task_families, task_keys, task_states, tasks
from tests.registry.material import POLICY, VALID, assessment, candidate

OTHER = PolicyVersion(line="other", weights="b" * 64)


@pytest.fixture
def filled(registry: Registry) -> Registry:
    """Six tasks: numbers 0 to 3 terminal, 4 and 5 of a repository; 0 to 2 accepted, 3 withdrawn."""
    candidates = [candidate(registry.blobs, number, families=("rename", f"f{number}")) for number in range(4)]
    candidates += [
        candidate(
            registry.blobs,
            number,
            kind=TaskKind.REPOSITORY,
            keys=("repository:sqlparse",),
            source=f"sqlparse 0.5.{number}",
            operator="swap",
            families=("swap",),
        )
        for number in (4, 5)
    ]
    digests = [registered.digest for registered in registry.register_many(candidates)]
    for digest in digests[:3]:
        registry.add_evidence(digest, VALID)
        registry.set_status(digest, TaskStatus.ACCEPTED, "sound")
    registry.withdraw(digests[3], "licence")
    registry.add_policy(POLICY, path="/p", format="tiny")
    registry.add_policy(OTHER, path="/p", format="tiny")
    registry.add_assessments([assessment(digests[0], 0), assessment(digests[1], 3), assessment(digests[2], 8)])
    registry.add_assessments([assessment(digests[0], 4, policy=OTHER)])
    registry.seal_split("first", {digests[0]: "holdout-families", digests[1]: "train"})
    registry.seal_split("second", {digests[0]: "train", digests[4]: "train", digests[5]: "train"})
    return registry


def numbers(rows: list) -> list[int]:
    return sorted(int(row.name.rsplit("/", 1)[1]) for row in rows)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [0, 1, 2, 4, 5]),
        ({"status": TaskStatus.ACCEPTED}, [0, 1, 2]),
        ({"status": TaskStatus.WITHDRAWN}, [3]),
        ({"kind": TaskKind.REPOSITORY}, [4, 5]),
        ({"line": "tiny", "state": TaskState.FRONTIER}, [1]),
        ({"line": "tiny", "state": TaskState.TOO_HARD}, [0]),
        ({"line": "tiny", "state": TaskState.UNASSESSED}, [4, 5]),
        ({"line": "other", "state": TaskState.FRONTIER}, [0]),
        ({"line": "other", "state": TaskState.UNASSESSED}, [1, 2, 4, 5]),
        ({"state": TaskState.FRONTIER}, [0, 1]),
        ({"split": "first", "part": "train"}, [1]),
        ({"part": "train"}, [0, 4, 5]),
        ({"split": "first", "part": "holdout-families", "kind": TaskKind.REPOSITORY}, []),
        ({"family": "rename"}, [0, 1, 2]),
        ({"family": "f1"}, [1]),
        ({"source": "sqlparse"}, [4, 5]),
        ({"source": "sqlparse 0.5.5"}, [5]),
        ({"source": "sql"}, []),
        ({"limit": 2}, [4, 5]),
        ({"limit": 0}, []),
    ],
)
def test_filters(filled: Registry, filters: dict, expected: list[int]) -> None:
    assert numbers(filled.query(**filters)) == expected


def test_rows_say_what_is_known(filled: Registry) -> None:
    one = filled.query(family="f1", line="tiny", split="first")[0]
    assert (one.k, one.n, one.line, one.policy, one.state) == (3, 8, "tiny", POLICY.weights, TaskState.FRONTIER)
    # Wilson's interval for 3 of 8 at 95 %, by hand: centre (3 + 1.92) / (8 + 3.84), half-width 0.278.
    assert one.interval is not None
    assert (one.interval.low, one.interval.high) == (pytest.approx(0.1368, abs=1e-4), pytest.approx(0.6943, abs=1e-4))
    assert (one.split, one.part, one.families, one.reason) == ("first", "train", ("f1", "rename"), "sound")
    repository = filled.query(source="sqlparse 0.5.4")[0]
    assert (repository.operator, repository.source, repository.generator) == ("swap", "sqlparse 0.5.4", "material")
    assert (repository.k, repository.interval, repository.state) == (None, None, TaskState.UNASSESSED)
    listed = json.loads(json.dumps(one.as_json()))
    assert {"digest", "kind", "name", "status", "state", "split", "part", "k", "n", "interval", "policy"} <= set(listed)
    assert (listed["status"], listed["state"], listed["kind"]) == ("accepted", "frontier", "terminal")


def test_order_is_by_name_and_a_list_is_one_statement(filled: Registry) -> None:
    statements: list[str] = []
    engine = filled._database.engine
    event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    names = [row.name for row in filled.query(status=TaskStatus.ACCEPTED, line="tiny")]
    assert names == sorted(names)
    assert [statement.split()[0] for statement in statements if not statement.startswith("BEGIN")] == ["SELECT"]


def test_one_row_and_counts(filled: Registry) -> None:
    withdrawn = filled.query(status=TaskStatus.WITHDRAWN)[0]
    assert filled.row(withdrawn.digest) == withdrawn
    assert filled.row("0" * 64) is None
    counts = filled.counts()
    assert (counts[TaskStatus.ACCEPTED], counts[TaskStatus.CANDIDATE], counts[TaskStatus.REJECTED]) == (3, 2, 0)
    with pytest.raises(UserError):
        filled.query(limit=-1)


@pytest.mark.parametrize(
    "filters",
    [
        {"source": "sqlparse"},
        {"family": "f1"},
        {"status": TaskStatus.ACCEPTED, "limit": 10},
        {"line": "tiny", "state": TaskState.FRONTIER, "split": "first", "part": "train"},
        {"limit": 10},
    ],
)
def test_lists_are_answered_by_indexes(filled: Registry, filters: dict) -> None:
    if not filled._database.embedded:
        pytest.skip("reads SQLite's query plan")
    plans: list[str] = []

    def explain(connection: Connection, cursor: object, statement: str, parameters: tuple, *_: object) -> None:
        if statement.startswith("SELECT"):
            raw = connection.connection.cursor()
            plans.extend(row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters))

    event.listen(filled._database.engine, "before_cursor_execute", explain)
    filled.query(**filters)
    assert plans
    # Walking an index in order up to a limit is fine, and so is the small table of splits; walking a table is not.
    scans = [plan for plan in plans if plan.startswith("SCAN") and "USING" not in plan and "splits" not in plan]
    assert scans == [], plans


@pytest.mark.long
def test_a_hundred_thousand_tasks_are_listed_fast(tmp_path: Path) -> None:
    registry = Registry.open(f"sqlite:///{tmp_path}/registry.db", tmp_path / "blobs")
    _fill(registry, 100_000)
    # Seconds; several times what two busy cores need.
    limits = {
        "frontier of train": (
            5.0,
            {"line": "tiny", "split": "main", "state": TaskState.FRONTIER, "part": "train", "limit": 100},
        ),
        "accepted": (0.5, {"status": TaskStatus.ACCEPTED, "limit": 100}),
        "one source": (0.5, {"source": "project-7"}),
        "one family": (0.5, {"family": "f7", "limit": 100}),
    }
    for name, (limit_s, filters) in limits.items():
        started = time.perf_counter()
        rows = registry.query(**filters)
        assert rows and time.perf_counter() - started < limit_s, name
    assert registry.resolve(rows[0].digest[:12]) == rows[0].digest
    registry.close()


def _fill(registry: Registry, count: int) -> None:
    """Rows of `count` tasks, without blobs."""
    digests = [f"{number * 2654435761 % 2**32:08x}" + f"{number:056x}" for number in range(count)]
    blank = {"reason": "", "instruction": "", "text": "", "origin": "o", "created_at": ""}
    registry.add_policy(POLICY, path="/p", format="tiny")
    with registry._database.write() as connection:
        connection.execute(
            insert(tasks),
            [
                {"digest": digest, "kind": "terminal", "name": f"terminal/{number:06d}", "status": "candidate", **blank}
                for number, digest in enumerate(digests)
            ],
        )
        passed = {**{name: getattr(VALID, name) for name in VALID.__dataclass_fields__}, "created_at": ""}
        connection.execute(insert(evidence), [{"task": digest, **passed} for digest in digests])
        connection.execute(update(tasks).values(status="accepted"))
        connection.execute(
            insert(origins),
            [
                {
                    "task": digest,
                    "digest": "o",
                    "generator": "g",
                    "generator_version": "1",
                    "source": None,
                    "manifest": {},
                    "created_at": "",
                }
                for digest in digests
            ],
        )
        keys = [{"task": digest, "key": f"repository:project-{n % 500}", "position": 0} for n, digest in enumerate(digests)]
        connection.execute(insert(task_keys), keys)
        families = [{"task": digest, "family": f"f{number % 50}", "position": 0} for number, digest in enumerate(digests)]
        connection.execute(insert(task_families), families)
        counts = {"line": "tiny", "policy": POLICY.weights, "rollouts": 8, "masked": 0, "unparsed": 0, "temperature": 1.0}
        connection.execute(
            insert(assessments),
            [
                {"task": digest, "successes": n % 9, "image": "", "backend": "", "state": "", "created_at": "", **counts}
                for n, digest in enumerate(digests)
            ],
        )
        state = ["too hard", *["frontier"] * 7, "mastered"]
        connection.execute(
            insert(task_states),
            [
                {"line": "tiny", "task": digest, "assessment": number + 1, "state": state[number % 9]}
                for number, digest in enumerate(digests)
            ],
        )
        connection.execute(insert(splits).values(name="main", digest="", sealed=True, created_at=""))
        connection.execute(insert(split_tasks), [{"split": "main", "task": digest, "part": "train"} for digest in digests])
