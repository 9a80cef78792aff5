"""A server that writes what a test tells it to, and an endpoint that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from factory.agent.endpoint import Endpoint, EndpointConfig
from tests.factory.agent.chat_server import ChatServer

Open = Callable[..., Endpoint]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture
def open_endpoint(server: ChatServer, tmp_path: Path) -> Iterator[Open]:
    """Opens endpoints of the server that share one cache."""
    opened = []

    def one(**more: Any) -> Endpoint:
        fields = {"address": server.address, "model": "writer", "retries": 0, "timeout_s": 60.0} | more
        opened.append(Endpoint(EndpointConfig(**fields), tmp_path / "answers"))
        return opened[-1]

    yield one
    for endpoint in opened:
        endpoint.close()


@pytest.fixture
def endpoint(open_endpoint: Open) -> Endpoint:
    return open_endpoint()
