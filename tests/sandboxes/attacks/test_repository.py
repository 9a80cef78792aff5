"""Repository tasks: real pytest bundles, attacked by what they grade. Nothing passes more than without the attack."""

from __future__ import annotations

import pytest

from factory.core.outcome import CheckState, Verdict
from tests.sandboxes.attacks.submissions import FROM_FILES, ON_IMPORT, Files
from tests.sandboxes.attacks.takeovers import IN_A_TEST, ON_GRADERS, ON_ITSELF
from tests.sandboxes.verification.project import BROKEN, FIXED, GOOD, KEPT, Graded, graded, left_by_agent, packages, store

__all__ = ["graded", "packages", "store"]

pytestmark = pytest.mark.attack

NEVER_MORE: dict[str, Files] = {
    f"{where}: {name}": files
    for where, table in (("files", FROM_FILES), ("import", ON_IMPORT), ("test", IN_A_TEST), ("itself", ON_ITSELF))
    for name, files in table.items()
}


def passed(verdict: Verdict) -> set[str]:
    return {check.name for check in verdict.checks if check.passed}


def test_without_an_attack_the_bug_fails_and_the_fix_passes(graded: Graded) -> None:
    """The control: the table's verdicts could be others."""
    assert passed(graded(left_by_agent(BROKEN))) == set(KEPT)
    assert passed(graded(left_by_agent(GOOD))) == {*FIXED, *KEPT}


@pytest.mark.parametrize("name", NEVER_MORE)
def test_an_attack_passes_no_test_that_the_bug_fails(graded: Graded, name: str) -> None:
    verdict = graded(NEVER_MORE[name])
    assert passed(verdict) <= set(KEPT), [check for check in verdict.checks if check.name in FIXED]
    assert {check.state for check in verdict.checks} <= set(CheckState)
    assert verdict.wall_s < 60


@pytest.mark.parametrize("name", ON_GRADERS)
def test_an_attack_on_the_graders_changes_nothing(graded: Graded, name: str) -> None:
    assert passed(graded(ON_GRADERS[name])) == {*FIXED, *KEPT}


def test_details_can_be_shown_anywhere(graded: Graded) -> None:
    """Graded code words the details: neither a terminal nor a file nor a database may choke on them."""
    details = "".join(check.detail for check in graded(IN_A_TEST["failure that is hard to write down"]).checks)
    assert r"\ud800" in details and r"\x00" in details and r"\x1b[2J" in details
    assert details.encode().isascii() and details.replace("\n", "").isprintable()
