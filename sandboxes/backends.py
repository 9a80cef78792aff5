"""The table of back ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from factory.core.errors import UserError
from sandboxes.bubblewrap.backend import BubblewrapBackend
from sandboxes.contract import Backend
from sandboxes.layers import LAYER_BYTES

DOCKER_IMAGE = "python:3.11-slim"
"""Base image of the docker back end unless a setting names another."""

_BACKENDS: dict[str, Callable[[Path, str, int], Backend]] = {
    "bubblewrap": lambda cache, _, layer_bytes: BubblewrapBackend(cache, layer_bytes=layer_bytes),
    "docker": lambda _, image, __: _docker(image),
}


def _docker(image: str) -> Backend:
    from sandboxes.docker.backend import DockerBackend  # the SDK takes 0.2 s to load, and most runs do without

    return DockerBackend(image)


def open_backend(name: str, *, cache: Path, docker_image: str = DOCKER_IMAGE, layer_bytes: int = LAYER_BYTES) -> Backend:
    """The back end `name` with its layers, `layer_bytes` of them at most, below `cache`; docker keeps none.

    Raises UserError for an unknown name, SandboxError when it cannot work here.
    """
    try:
        make = _BACKENDS[name]
    except KeyError:
        raise UserError("backend", name, f"one of {', '.join(sorted(_BACKENDS))}") from None
    return make(cache, docker_image, layer_bytes)
