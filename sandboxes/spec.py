"""What both back ends check of an environment before they make a sandbox."""

from __future__ import annotations

import posixpath

from factory.core.errors import SandboxError
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import DEPENDENCIES, WORKSPACE

HOME = "/home/agent"
"""Home folder of the user inside, writable and empty."""
USER = 1000
"""User and group id inside."""

_TAKEN = ("/", "/bin", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", WORKSPACE)


def check_spec(spec: EnvironmentSpec, mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """`spec.mounts + mounts`. Raises SandboxError for what the back ends do not offer."""
    if spec.network != "none":
        raise SandboxError(f"network {spec.network!r} is not offered: only none")
    if spec.clock != "real":
        raise SandboxError(f"clock {spec.clock!r} is not offered: only real")
    everything = spec.mounts + mounts
    for mount in everything:
        if posixpath.normpath(mount.path) != mount.path or not mount.path.startswith("/") or mount.path.startswith("//"):
            raise SandboxError(f"mount path {mount.path!r} is not an absolute, normal path")
        if mount.path in _TAKEN or mount.path.startswith(tuple(f"{taken}/" for taken in _TAKEN[1:])):
            raise SandboxError(f"mount path {mount.path!r} is inside the runtime or the working directory")
    return everything


def shell_environment(spec: EnvironmentSpec, runtime: dict[str, str]) -> dict[str, str]:
    """All variables of a sandbox: nothing of the host's."""
    packages = {"PYTHONPATH": DEPENDENCIES} if any(mount.path == DEPENDENCIES for mount in spec.mounts) else {}
    return {
        **runtime,
        **packages,
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
        "TZ": spec.timezone,
        "LANG": spec.locale,
        "LC_ALL": spec.locale,
        "PYTHONHASHSEED": str(spec.hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
