"""Reach the Docker Engine that the usual variables name."""

from __future__ import annotations

import os
import socket

import docker
from docker import APIClient
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.errors import DockerException

from factory.core.errors import SandboxError

ENGINE_S = 120
"""Seconds that the engine may take to answer one request."""


def connect() -> APIClient:
    """A client of the engine at `DOCKER_HOST`, or of the local one. Raises SandboxError when none answers."""
    try:
        _knock(os.environ.get("DOCKER_HOST") or DEFAULT_UNIX_SOCKET)
        return APIClient(timeout=ENGINE_S, **docker.utils.kwargs_from_env())
    except (DockerException, OSError) as error:
        raise SandboxError(f"no Docker Engine answers: start one, or set DOCKER_HOST ({error})") from error


def _knock(host: str) -> None:
    """Try a local socket first: the SDK leaves the ones that it cannot connect open."""
    scheme, _, path = host.partition("://")
    if scheme in ("unix", "http+unix"):
        with socket.socket(socket.AF_UNIX) as tried:
            tried.connect("/" + path.lstrip("/"))
