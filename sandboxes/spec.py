"""What both back ends check of an environment before they make a sandbox."""

from __future__ import annotations

import posixpath
import re

from factory.core.errors import ImageError, SandboxError
from factory.core.task import EnvironmentSpec, Mount
from sandboxes.contract import DEPENDENCIES, WORKSPACE

HOME = "/home/agent"
"""Home folder of the user inside, writable and empty."""
USER = 1000
"""User and group id inside."""

TOOLS = ("bash", "sh", "ls", "cat", "grep", "sed", "awk", "find")
"""Programs that an image must offer beside Python."""
PYTHON_PROBE = "import ctypes, json, sqlite3, ssl, unittest, zlib, sys; print('%d.%d.%d' % sys.version_info[:3])"
"""Python code that needs the standard library that tasks use, and prints the version."""

PASSWD = (
    "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
    "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
)
ETC = (
    ("/etc/passwd", PASSWD),
    ("/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost sandbox\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
)
"""The files of the sandbox's `/etc`, beside the links of `/etc/alternatives`."""

_NAME = re.compile(r"python-(3\.\d+)")
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


def version_of(name: str) -> str:
    """The Python version that image `name` asks for. Raises ImageError for a name that is not `python-3.N`."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ImageError(f"unknown image {name!r}: known are python-3.N, for example python-3.11")
    return match[1]
