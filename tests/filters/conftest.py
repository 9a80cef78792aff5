"""The embedded back end, and blobs in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from factory.core.blobs import MemoryBlobs
from sandboxes.backends import open_backend
from sandboxes.contract import Backend


@pytest.fixture(scope="package")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    backend = open_backend("bubblewrap", cache=tmp_path_factory.mktemp("bubblewrap"))
    yield backend
    backend.close()


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()
