"""The pytest checker in real sandboxes: what counts as passed. What attacks get is in `tests/sandboxes/attacks`."""

from __future__ import annotations

from factory.core.outcome import CheckState
from tests.sandboxes.verification.project import BROKEN, FIXED, GOOD, IDS, KEPT, Graded, graded, left_by_agent, packages, store

__all__ = ["graded", "packages", "store"]


def test_the_fix_passes_and_every_id_comes_back_as_collected(graded: Graded) -> None:
    verdict = graded(left_by_agent(GOOD))
    assert [check.name for check in verdict.checks] == IDS
    assert [check.state for check in verdict.checks] == [CheckState.PASSED] * len(IDS)


def test_the_broken_project_fails_where_it_is_broken(graded: Graded) -> None:
    verdict = graded(left_by_agent(BROKEN))
    assert [check.state for check in verdict.checks] == [CheckState.FAILED] * len(FIXED) + [CheckState.PASSED] * len(KEPT)
    assert verdict.checks[0].detail.startswith("AssertionError")


def test_an_added_module_of_the_package_counts(graded: Graded) -> None:
    source = GOOD.replace("return a + b", "from calc.sums import total\n    return total(a, b)")
    assert graded(left_by_agent(source, {"calc/sums.py": "def total(a, b):\n    return a + b\n"})).passed


def test_waiting_is_not_using_time(graded: Graded) -> None:
    """Every call waits for longer than the second of processor time that a test may use."""
    waits = GOOD.replace("    return [value", "    import time\n\n    time.sleep(1.2)\n    return [value")
    assert graded(left_by_agent(waits)).passed
