from __future__ import annotations

import pytest

from .frontier import World, build


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Tasks, a warm-started policy and its assessments: about 15 s to build."""
    return build(tmp_path_factory.mktemp("world"))
