"""The shipped evaluation and a screen built on it, once."""

from __future__ import annotations

import pytest

from filters.contamination.references import ReferenceSet, human_eval
from filters.contamination.screen import ContaminationScreen


@pytest.fixture(scope="session")
def evaluation() -> ReferenceSet:
    return human_eval()


@pytest.fixture(scope="session")
def screen(evaluation: ReferenceSet) -> ContaminationScreen:
    return ContaminationScreen([evaluation])
