from __future__ import annotations

from typing import Any

import pytest

from factory.report.collect import figures
from registry.store import Registry

from ..small import Small
from .trained import add_training


@pytest.fixture(scope="session")
def trained(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The small data folder with a training's records; tests only read it."""
    return add_training(small, tmp_path_factory.mktemp("trained") / "data")


def figures_of(data: Small) -> dict[str, Any]:
    """The report's figures."""
    with Registry.open(data.settings.database_url, data.data / "blobs") as registry:
        return figures(registry, data.settings)


@pytest.fixture(scope="session")
def found(trained: Small) -> dict[str, Any]:
    return figures_of(trained)
