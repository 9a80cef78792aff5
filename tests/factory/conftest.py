from __future__ import annotations

import pytest

from .small import Small, build


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A data folder that tests only read; about ten seconds to build. Copy it (`small.copy`) before you change it."""
    return build(tmp_path_factory.mktemp("small") / "data")
