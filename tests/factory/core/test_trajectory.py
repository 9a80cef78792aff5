"""Tokens with their provenance."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.trajectory import SAMPLED, Owner, Tokens


@st.composite
def sequences(draw: st.DrawFn) -> Tokens:
    owners = tuple(draw(st.lists(st.sampled_from(Owner), max_size=12)))
    return Tokens(
        ids=tuple(draw(st.integers(0, 1000)) for _ in owners),
        owners=owners,
        logprobs=tuple(draw(st.floats(-50, 0)) if owner in SAMPLED else math.nan for owner in owners),
        versions=tuple(draw(st.integers(0, 3)) if owner in SAMPLED else -1 for owner in owners),
    )


def one(owner: Owner, logprob: float = -0.5, version: int = 0) -> Tokens:
    return Tokens(ids=(7,), owners=(owner,), logprobs=(logprob,), versions=(version,))


@given(sequences())
def test_exactly_what_the_policy_sampled_is_trained_on(tokens: Tokens) -> None:
    mask = tokens.loss_mask()
    assert mask == tuple(owner.name in ("ACTION", "REASONING") for owner in tokens.owners)
    assert mask == tuple(version >= 0 for version in tokens.versions)
    assert mask == tuple(not math.isnan(logprob) for logprob in tokens.logprobs)
    assert tokens.loss_mask(train_reasoning=False) == tuple(owner.name == "ACTION" for owner in tokens.owners)


@given(sequences(), sequences())
def test_joining_keeps_every_token(left: Tokens, right: Tokens) -> None:
    both = left + right
    assert len(both) == len(left) + len(right)
    assert both.ids == left.ids + right.ids and both.owners == left.owners + right.owners
    assert both.loss_mask() == left.loss_mask() + right.loss_mask()


@pytest.mark.parametrize("owner", [Owner.SYSTEM, Owner.PROMPT, Owner.OBSERVATION, Owner.INJECTED_ERROR, Owner.TEMPLATE])
def test_what_is_given_has_no_version_and_no_gradient(owner: Owner) -> None:
    tokens = Tokens.given([1, 2, 3], owner)
    assert tokens.ids == (1, 2, 3) and tokens.versions == (-1,) * 3 and not any(tokens.loss_mask())
    with pytest.raises(ValueError, match="policy version"):
        one(owner, version=0)


@pytest.mark.parametrize("owner", sorted(SAMPLED))
def test_what_is_sampled_needs_version_and_log_probability(owner: Owner) -> None:
    assert one(owner).loss_mask() == (True,)
    with pytest.raises(ValueError, match="policy version"):
        one(owner, version=-1)
    with pytest.raises(ValueError, match="log-probability"):
        one(owner, logprob=math.nan)
    with pytest.raises(ValueError, match="policy version"):
        Tokens.given([1], owner)


@pytest.mark.parametrize("field", ["ids", "owners", "logprobs", "versions"])
def test_fields_of_different_length_are_refused(field: str) -> None:
    whole: dict[str, tuple[object, ...]] = {"ids": (1,), "owners": (Owner.ACTION,), "logprobs": (-1.0,), "versions": (0,)}
    with pytest.raises(ValueError, match="differ in length"):
        Tokens(**(whole | {field: ()}))  # type: ignore[arg-type]
