"""Whether a shell still comes back: by what is seen of it, not by a short time."""

from __future__ import annotations

import pytest

from sandboxes.grace import LOAD_S, Grace, Look

REST_S = 0.5
ASLEEP = Look(state="S", cpu_s=1.0, dying=0)


def given_up(*looks: Look | None) -> float | None:
    """The time at which `looks`, one every tenth of a second and the last one over and over, end the grace."""
    grace = Grace(100.0, REST_S)
    for tenth in range(101):
        if grace.over(100.0 + tenth / 10, looks[min(tenth, len(looks) - 1)]):
            return tenth / 10
    return None


@pytest.mark.parametrize(
    ("looks", "seconds"),
    [
        ((ASLEEP,), REST_S),
        ((None,), REST_S),
        ((Look(state="R", cpu_s=1.0, dying=0),), LOAD_S),
        ((Look(state="D", cpu_s=1.0, dying=0),), LOAD_S),
        ((Look(state="T", cpu_s=1.0, dying=0),), LOAD_S),
        ((Look(state="S", cpu_s=1.0, dying=3),), LOAD_S),
        ((Look(state="S", cpu_s=1.0, dying=3), ASLEEP), REST_S),
        ((*[Look(state="R", cpu_s=1.0, dying=0)] * 11, ASLEEP), 1.0 + REST_S),
        (tuple(Look(state="S", cpu_s=1.0 + n / 100, dying=0) for n in range(100)), LOAD_S),
        (tuple(Look(state="R", cpu_s=1.0 + n / 10, dying=0) for n in range(100)), REST_S),
        (tuple(Look(state="R", cpu_s=1.0 + n / 50, dying=0) for n in range(100)), 2.5),
    ],
    ids=str,
)
def test_when_a_shell_is_given_up(looks: tuple[Look | None, ...], seconds: float) -> None:
    assert given_up(*looks) == pytest.approx(seconds, abs=0.11)
