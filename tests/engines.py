"""Real back ends for tests: bubblewrap always, docker where an engine answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from factory.core.errors import SandboxError
from sandboxes.backends import DOCKER_IMAGE, open_backend
from sandboxes.contract import Backend
from sandboxes.docker.base_image import NAME


def bubblewrap_backend(cache: Path) -> Backend:
    """The embedded back end."""
    return open_backend("bubblewrap", cache=cache)


def docker_backend(cache: Path) -> Backend:
    """The docker back end with whatever base image is there; the test is skipped with the reason where none is."""
    reason = ""
    for image in filter(None, (os.environ.get("FACTORY_TEST_DOCKER_IMAGE"), NAME, DOCKER_IMAGE)):
        try:
            opened = open_backend("docker", cache=cache, docker_image=image)
            opened.resolve("python-3.11")
            return opened
        except SandboxError as error:
            reason = str(error)
    pytest.skip(f"docker: {reason}")
