"""The series of terminal tasks, and tasks of every family solved, left alone and nearly solved in real sandboxes."""

from __future__ import annotations

from functools import cache

import pytest

from factory.agent.environment import Environment, replay
from factory.core.action import Action
from factory.core.blobs import MemoryBlobs
from factory.core.errors import UserError
from factory.core.outcome import Outcome
from factory.core.task import Candidate
from generators.names import partition
from generators.terminal import TerminalConfig, TerminalDemonstrator, TerminalGenerator
from generators.terminal.skills import SKILLS
from sandboxes.contract import Backend
from tests.generators.series import assert_complete, assert_sealed, elsewhere, gold, identities

BLOBS = MemoryBlobs()


@cache
def series(seed: int = 7, count: int = 400) -> tuple[Candidate, ...]:
    return tuple(TerminalGenerator().generate(BLOBS, seed=seed, start=0, count=count))


@cache
def alone(family: str) -> Candidate:
    """A task of one skill."""
    config = TerminalConfig(families=(family,), apart=(), apart_percent=0, depth_weights=(1,))
    return next(TerminalGenerator(config).generate(BLOBS, seed=11, start=0, count=1))


def bash(*commands: str) -> list[Action]:
    return [*(Action("bash", {"command": command}) for command in commands), Action("submit")]


def both(outcome: Outcome) -> tuple[bool, bool]:
    """Whether the verifier and the held-out verifier passed; a masked outcome is an error of the test."""
    assert outcome.verdict is not None and outcome.held_out is not None, outcome.fault
    assert outcome.verdict.verifier != outcome.held_out.verifier
    return outcome.verdict.passed, outcome.held_out.passed


def test_the_same_numbers_in_another_process_order_and_locale() -> None:
    numbers = (31, 4, 15)
    here = identities([series()[number] for number in numbers])
    assert elsewhere(TerminalGenerator, numbers, hash_seed=1) == here
    assert elsewhere(TerminalGenerator, numbers, hash_seed=2) == here


def test_two_seeds_share_no_task_and_one_seed_repeats_none() -> None:
    first, second = ({candidate.task.digest for candidate in series(seed)} for seed in (7, 8))
    assert len(first) == 400 and first.isdisjoint(second)


def test_requests_rarely_repeat_within_a_series() -> None:
    texts = {candidate.text for candidate in series()}
    assert len(texts) > 0.98 * len(series())


def test_a_candidate_says_where_it_came_from() -> None:
    for candidate in series()[:50]:
        assert_complete(candidate.task, BLOBS)
        signature = candidate.origin.template
        assert candidate.name == f"terminal/{signature}/{candidate.origin.parameters['number']:04d}"
        assert "+".join(candidate.families) == signature
        assert candidate.keys.keys == (f"signature:{signature}", f"slots:terminal-{candidate.origin.parameters['pool']}")


def test_a_task_uses_the_names_of_its_pool_alone() -> None:
    shared, reserved = partition("terminal", 8)
    for candidate in series():
        pool = str(candidate.origin.parameters["pool"])
        own = set(reserved[list(SKILLS).index(pool[6:])] if pool.startswith("apart-") else shared[int(pool)])
        steps = candidate.origin.parameters["steps"]
        assert isinstance(steps, list)
        assert {name for step in steps for name in step["slots"].values()} <= own  # type: ignore[index, call-overload, union-attr]


def test_ordered_pairs_abound() -> None:
    signatures = {str(signature) for signature, _ in TerminalConfig().space.weighted}
    pairs = {text for text in signatures if text.count("+") == 1 and "store" not in text and "link" not in text}
    assert len(pairs) == 14 * 13


@pytest.mark.parametrize(("changes", "field"), [({"style": "loud"}, "terminal.style"), ({"turns": 2}, "terminal.turns")])
def test_a_wrong_setting_names_its_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(UserError) as caught:
        TerminalConfig(**changes)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_full_sentences_and_joined_commands_are_settings() -> None:
    config = TerminalConfig(
        style="full", joined=True, families=("copy", "sort"), apart=(), apart_percent=0, depth_weights=(0, 1)
    )
    candidate = next(TerminalGenerator(config).generate(BLOBS, seed=1, start=0, count=1))
    assert candidate.task.instruction.endswith("Change nothing else in the working directory.")
    actions = gold(candidate, BLOBS)
    assert [action.tool for action in actions] == ["bash", "submit"]
    assert " && " in actions[0].arguments["command"]


def test_demonstrations_are_plain_silent_and_clear_of_the_holdout() -> None:
    withheld = frozenset({"slots:terminal-0", "slots:terminal-5", "signature:make"})
    shared, _ = partition("terminal", 8)
    held = {name for pool in (0, 5) for name in shared[pool]}
    shown = list(TerminalDemonstrator(withheld=withheld).demonstrate(seed=3, count=2_000))
    for instruction, demonstration, observations in shown:
        assert instruction == instruction.lower() and "  " not in instruction
        assert demonstration.actions[-1] == Action("submit")
        assert observations == ("",) * (len(demonstration.actions) - 1)
        assert held.isdisjoint(instruction.split())
        assert not {"link", "put"} & set(instruction.split()) or "together" in instruction
        assert "to the folder" not in instruction and "into the folder" not in instruction
    again = list(TerminalDemonstrator(withheld=withheld).demonstrate(seed=3, count=20))
    assert again == shown[:20]
    assert next(TerminalDemonstrator(withheld=withheld).demonstrate(seed=4, count=1)) != shown[0]


def test_no_demonstration_is_a_task_of_the_same_seed() -> None:
    shown = {instruction for instruction, _, _ in TerminalDemonstrator().demonstrate(seed=7, count=2_000)}
    pairs = {candidate.task.instruction for candidate in series() if len(candidate.families) == 2}
    assert shown.isdisjoint(pairs)


@pytest.mark.parametrize("family", SKILLS)
def test_gold_passes_and_the_no_op_fails_on_both_verifiers(family: str, backend: Backend) -> None:
    candidate = alone(family)
    assert both(replay(candidate.task, gold(candidate, BLOBS), backend, BLOBS)) == (True, True)
    assert both(replay(candidate.task, [], backend, BLOBS)) == (False, False)


@pytest.mark.parametrize("family", SKILLS)
def test_near_misses_fail_on_both_verifiers(family: str, backend: Backend) -> None:
    candidate = alone(family)
    steps = candidate.origin.parameters["steps"]
    assert isinstance(steps, list)
    slots = steps[0]["slots"]  # type: ignore[index, call-overload]
    for text in SKILLS[family].near_misses:
        command = text.format_map(slots)  # type: ignore[arg-type]
        assert both(replay(candidate.task, bash(command), backend, BLOBS)) == (False, False), command


def test_compositions_pass_in_order_and_show_nothing(backend: Backend) -> None:
    pairs = [candidate for candidate in series() if len(candidate.families) == 2][:6]
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
@pytest.mark.parametrize(
    "trick",
    [
        "ln -s /verifier/spec.json {target}",
        "ln -s {source} {target}",
        "mkfifo {target}",
        "cp {source} {target}; touch .hidden",
        "cp {source} {target}; mkfifo pipe",
        "cp {source} {target}; ln -s /submission all",
        "mkdir {target}; cp {source} {target}",
        "truncate -s 20M {target}",
    ],
)
def test_tricks_in_the_working_directory_fail_on_both_verifiers(trick: str, backend: Backend) -> None:
    candidate = alone("copy")
    slots = candidate.origin.parameters["steps"][0]["slots"]  # type: ignore[index, call-overload]
    command = trick.format_map(slots)  # type: ignore[arg-type]
    assert both(replay(candidate.task, bash(command), backend, BLOBS)) == (False, False)


def test_a_task_of_four_skills_passes(backend: Backend) -> None:
    config = TerminalConfig(families=("make", "write", "copy", "sort"), apart=(), apart_percent=0, depth_weights=(0, 0, 0, 1))
    candidate = next(TerminalGenerator(config).generate(BLOBS, seed=5, start=0, count=1))
    assert sorted(candidate.families) == ["copy", "make", "sort", "write"]
    outcome = replay(candidate.task, gold(candidate, BLOBS), backend, BLOBS)
    assert both(outcome) == (True, True)
    assert outcome.verdict is not None and len(outcome.verdict.checks) == 5
