"""The series of database tasks, and tasks of every family solved, left alone and nearly solved in real sandboxes."""

from __future__ import annotations

from functools import cache

import pytest

from factory.agent.environment import Environment, replay
from factory.core.action import Action
from factory.core.blobs import MemoryBlobs, get_json
from factory.core.errors import UserError
from factory.core.files import FileTree
from factory.core.outcome import Outcome
from factory.core.task import Candidate
from generators.database import DatabaseConfig, DatabaseDemonstrator, DatabaseGenerator
from generators.database.skills import SKILLS
from generators.names import partition
from sandboxes.contract import Backend
from tests.generators.series import assert_complete, assert_sealed, elsewhere, gold, identities

BLOBS = MemoryBlobs()
ANSWERS = ("pick", "total", "tally", "pairs", "ranked")


@cache
def series(seed: int = 7, count: int = 150) -> tuple[Candidate, ...]:
    return tuple(DatabaseGenerator().generate(BLOBS, seed=seed, start=0, count=count))


@cache
def alone(family: str) -> Candidate:
    """A task of one skill."""
    config = DatabaseConfig(families=(family,), apart=(), apart_percent=0, depth_weights=(1,))
    return next(DatabaseGenerator(config).generate(BLOBS, seed=11, start=0, count=1))


def sql(*queries: str) -> list[Action]:
    return [*(Action("sql", {"query": query}) for query in queries), Action("submit")]


def slots(candidate: Candidate) -> dict[str, str]:
    steps = candidate.origin.parameters["steps"]
    assert isinstance(steps, list) and isinstance(steps[0], dict)
    return dict(steps[0]["slots"])  # type: ignore[arg-type]


def both(outcome: Outcome) -> tuple[bool, bool]:
    """Whether the verifier and the held-out verifier passed; a masked outcome is an error of the test."""
    assert outcome.verdict is not None and outcome.held_out is not None, outcome.fault
    assert outcome.verdict.verifier != outcome.held_out.verifier
    return outcome.verdict.passed, outcome.held_out.passed


def test_the_same_numbers_in_another_process_order_and_locale() -> None:
    numbers = (31, 4, 15)
    here = identities([series()[number] for number in numbers])
    assert elsewhere(DatabaseGenerator, numbers, hash_seed=1) == here
    assert elsewhere(DatabaseGenerator, numbers, hash_seed=2) == here


def test_two_seeds_share_no_task_and_one_seed_repeats_none() -> None:
    first, second = ({candidate.task.digest for candidate in series(seed)} for seed in (7, 8))
    assert len(first) == 150 and first.isdisjoint(second)


def test_a_candidate_says_where_it_came_from_and_what_its_data_tell_apart() -> None:
    for candidate in series()[:40]:
        assert_complete(candidate.task, BLOBS)
        signature = candidate.origin.template
        assert candidate.keys.keys == (f"signature:{signature}", f"slots:database-{candidate.origin.parameters['pool']}")
        databases = candidate.origin.parameters["databases"]
        assert isinstance(databases, list) and len(databases) == 5
        assert databases[0]["near_misses"] == sum(len(SKILLS[family].near_misses) for family in candidate.families)  # type: ignore[index, call-overload]


def test_the_verifiers_hold_databases_that_the_agent_never_sees_and_each_its_own() -> None:
    for family in ANSWERS:
        task = alone(family).task
        assert task.held_out is not None
        own = FileTree.load(BLOBS, task.environment.files)["data.db"].content
        found = [
            {entry.content for path, entry in FileTree.load(BLOBS, tree).items() if path.startswith("files/others/")}
            for tree in (task.verifier.bundle, task.held_out.bundle)
        ]
        assert [len(contents) for contents in found] == [2, 2]
        assert found[0].isdisjoint(found[1]) and own not in found[0] | found[1]


def test_only_answers_are_judged_on_other_data() -> None:
    for family in SKILLS:
        tree = FileTree.load(BLOBS, alone(family).task.verifier.bundle)
        spec = get_json(BLOBS, str(tree["spec.json"].content))
        assert bool(spec["others"]) is (family in ANSWERS)


def test_demonstrations_keep_clear_of_the_holdout() -> None:
    shared, _ = partition("database", 8)
    shown = list(DatabaseDemonstrator(withheld=frozenset({"slots:database-2"})).demonstrate(seed=3, count=1_000))
    for instruction, demonstration, observations in shown:
        assert set(shared[2]).isdisjoint(instruction.split())
        assert {action.tool for action in demonstration.actions} == {"sql", "submit"}
        assert observations == ("",) * (len(demonstration.actions) - 1)


def test_a_wrong_number_of_databases_names_its_field() -> None:
    with pytest.raises(UserError, match=r"database\.others"):
        DatabaseConfig(others=0)


@pytest.mark.parametrize("family", SKILLS)
def test_gold_passes_and_the_no_op_fails_on_both_verifiers(family: str, backend: Backend) -> None:
    candidate = alone(family)
    assert both(replay(candidate.task, gold(candidate, BLOBS), backend, BLOBS)) == (True, True)
    assert both(replay(candidate.task, [], backend, BLOBS)) == (False, False)


@pytest.mark.parametrize("family", SKILLS)
def test_near_misses_fail_on_both_verifiers(family: str, backend: Backend) -> None:
    candidate = alone(family)
    for text in SKILLS[family].near_misses:
        query = text.format_map(slots(candidate))
        assert both(replay(candidate.task, sql(query), backend, BLOBS)) == (False, False), query


def test_compositions_pass_in_order_and_show_nothing(backend: Backend) -> None:
    pairs = [candidate for candidate in series() if len(candidate.families) == 2][:4]
    for candidate in pairs:
        actions = gold(candidate, BLOBS)
        environment = Environment(candidate.task, backend, BLOBS)
        shown = [environment.step(action).observation for action in actions[:-1]]
        environment.close()
        assert [observation.text for observation in shown if observation] == [""] * (len(actions) - 1)
        assert both(replay(candidate.task, actions, backend, BLOBS)) == (True, True)
        assert both(replay(candidate.task, [actions[0], actions[-1]], backend, BLOBS)) == (False, False)


@pytest.mark.parametrize("number", range(3))
def test_the_agent_can_read_its_files_and_nothing_of_verifiers_and_solution(number: int, backend: Backend) -> None:
    assert_sealed(series()[number], backend, BLOBS)


@pytest.mark.attack
def test_an_answer_written_down_for_the_agents_own_data_fails(backend: Backend) -> None:
    candidate = alone("total")
    names = slots(candidate)
    asked = "create temp table t as select {key}, sum({amount}) as s from {table} group by {key}".format_map(names)
    environment = Environment(candidate.task, backend, BLOBS)
    step = environment.step(Action("sql", {"query": asked + "; select * from t"}))
    environment.close()
    assert step.observation is not None
    rows = [line.split("\t") for line in step.observation.text.splitlines()]
    values = ", ".join(f"('{key}', {value})" for key, value in rows)
    written = f"create view {names['view']} ({names['key']}, total) as select * from (values {values})"
    assert both(replay(candidate.task, sql(written), backend, BLOBS)) == (False, False)


@pytest.mark.attack
@pytest.mark.parametrize(
    "extra",
    [
        "create table extra (a)",
        "create trigger extra after insert on {table} begin delete from {table}; end",
        "create index extra on {table} ({key})",
        "insert into {table} select * from {table} limit 1",
        "vacuum into '/workspace/copy.db'",
        "pragma writable_schema = on; update sqlite_schema set sql = 'create view x as select 1' where type = 'view'",
    ],
)
def test_the_right_answer_with_collateral_fails(extra: str, backend: Backend) -> None:
    candidate = alone("pick")
    solution = gold(candidate, BLOBS)[0].arguments["query"]
    query = extra.format_map(slots(candidate))
    assert both(replay(candidate.task, sql(solution, query), backend, BLOBS)) == (False, False)
