"""The embedded back end, for tests that run tasks for real."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandboxes.bubblewrap.backend import BubblewrapBackend


@pytest.fixture(scope="package")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BubblewrapBackend]:
    backend = BubblewrapBackend(tmp_path_factory.mktemp("cache"))
    yield backend
    backend.close()
