from __future__ import annotations

from pathlib import Path

import pytest

from factory.flows.budget import Budget, BudgetConfig

SHARED_MEMORY = Path("/dev/shm")


def test_without_bounds_nothing_is_spent(tmp_path: Path) -> None:
    budget = Budget(BudgetConfig(), tmp_path)
    budget.sampled(10**12)
    assert budget.spent() == ""


def test_time(tmp_path: Path) -> None:
    budget = Budget(BudgetConfig(seconds=10.0), tmp_path)
    assert budget.spent() == ""
    budget.started -= 9.0
    assert budget.spent() == ""
    budget.started -= 1.5
    assert budget.spent() == "time: 10 s of 10 s" or budget.spent() == "time: 11 s of 10 s"


def test_tokens(tmp_path: Path) -> None:
    budget = Budget(BudgetConfig(tokens=100), tmp_path)
    budget.sampled(60)
    assert budget.spent() == ""
    budget.sampled(40)
    assert budget.spent() == "tokens: 100 of 100"


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="needs a file system that nothing else writes to: /dev/shm")
def test_disk() -> None:
    """A file system in memory, so that what others write to the disk does not count."""
    file = SHARED_MEMORY / "envfactory-budget"
    budget = Budget(BudgetConfig(disk_bytes=4 << 20), SHARED_MEMORY)
    try:
        assert budget.spent() == ""
        file.write_bytes(b"\1" * (8 << 20))
        assert budget.spent().startswith("disk: ") and budget.spent().endswith(" bytes of 4194304")
    finally:
        file.unlink(missing_ok=True)
    assert budget.spent() == ""
