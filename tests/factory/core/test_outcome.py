"""Tri-state outcomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.outcome import MASKING, Check, CheckState, Outcome, OutcomeKind, Termination, Verdict

DIGEST = "0" * 64


def verdict(*states: CheckState) -> Verdict:
    checks = tuple(Check(str(number), state) for number, state in enumerate(states))
    return Verdict(checks=checks, verifier=DIGEST, start=DIGEST, end=DIGEST)


PASSED = verdict(CheckState.PASSED)


@pytest.mark.parametrize("state", list(CheckState))
def test_only_passed_is_passed(state: CheckState) -> None:
    assert Check("a", state).passed is (state.value == "passed")
    assert verdict(CheckState.PASSED, state).passed is (state.value == "passed")


@given(st.lists(st.sampled_from(CheckState), max_size=20))
def test_progress_is_the_share_of_passed_checks(states: list[CheckState]) -> None:
    found = verdict(*states)
    count = [state.value for state in states].count("passed")
    assert found.progress == (count / len(states) if states else 0.0)
    assert found.passed is (len(states) > 0 and count == len(states))


def test_a_verifier_that_checked_nothing_passed_nothing() -> None:
    assert not verdict().passed and verdict().progress == 0.0


@pytest.mark.parametrize("reason", sorted(MASKING))
def test_failures_of_the_infrastructure_are_never_scored(reason: Termination) -> None:
    with pytest.raises(ValueError, match="scored outcome"):
        Outcome(kind=OutcomeKind.SCORED, reason=reason, verdict=PASSED)
    assert not Outcome(kind=OutcomeKind.MASKED, reason=reason, verdict=PASSED).solved


@pytest.mark.parametrize("reason", sorted(set(Termination) - MASKING))
def test_the_policys_own_ends_are_scored(reason: Termination) -> None:
    assert Outcome(kind=OutcomeKind.SCORED, reason=reason, verdict=PASSED).solved
    assert not Outcome(kind=OutcomeKind.SCORED, reason=reason, verdict=verdict(CheckState.FAILED)).solved
    with pytest.raises(ValueError, match="needs a verdict"):
        Outcome(kind=OutcomeKind.SCORED, reason=reason)


def test_the_list_of_ends_is_the_designs() -> None:
    assert {reason.value for reason in Termination} == {
        "submitted",
        "turn limit",
        "token limit",
        "episode time limit",
        "action time limit",
        "parser rejection",
        "invalid tool call",
        "tool failure",
        "retries exhausted",
        "environment lost",
        "verifier failed",
        "verifier time limit",
        "cancelled",
    }
    assert {kind.value for kind in OutcomeKind} == {"scored", "masked", "invalid task"}


def test_the_held_out_verdict_is_no_part_of_solving() -> None:
    failed = verdict(CheckState.FAILED)
    assert Outcome(kind=OutcomeKind.SCORED, reason=Termination.SUBMITTED, verdict=PASSED, held_out=failed).solved
    assert not Outcome(kind=OutcomeKind.SCORED, reason=Termination.SUBMITTED, verdict=failed, held_out=PASSED).solved
