"""What both back ends check of an environment before they make a sandbox."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from factory.core.errors import ImageError, SandboxError
from factory.core.task import EnvironmentSpec, Limits, Mount
from sandboxes.clock import FOLDER, frozen_ns
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

FACTS_SCRIPT = """
locale -a 2>/dev/null | sed 's/^/locale /'
cd /usr/share/zoneinfo 2>/dev/null && find -L . -type f -path './[A-Z]*' | sed 's/^../zone /'
"""
"""Shell text that lists the locales and time zones of an image."""
_LOCALES = frozenset({"C", "POSIX"})
_RULE = re.compile(r"(<[-+A-Za-z0-9]{3,}>|[A-Za-z]{3,})[-+]?\d{1,3}(:\d\d){0,2}([<A-Za-z].*)?")
"""A time zone that needs no file: a name and an offset, then perhaps the rule of its summer time (POSIX)."""

_NAME = re.compile(r"python-(3\.\d+)")
_TAKEN = (
    "/",
    "/bin",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/tmp",
    "/usr",
    WORKSPACE,
    FOLDER,
)


def check_spec(spec: EnvironmentSpec, mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """`spec.mounts + mounts`. Raises SandboxError for what the back ends do not offer."""
    if spec.network != "none":
        raise SandboxError(f"network {spec.network!r} is not offered: only none")
    frozen_ns(spec.clock)
    everything = spec.mounts + mounts
    for mount in everything:
        if posixpath.normpath(mount.path) != mount.path or not mount.path.startswith("/") or mount.path.startswith("//"):
            raise SandboxError(f"mount path {mount.path!r} is not an absolute, normal path")
        if mount.path in _TAKEN or mount.path.startswith(tuple(f"{taken}/" for taken in _TAKEN[1:])):
            raise SandboxError(f"mount path {mount.path!r} is inside the runtime or the working directory")
    return everything


@dataclass(frozen=True, kw_only=True)
class Offered:
    """What an image on this machine offers of the policies that need something installed."""

    locales: frozenset[str]
    zones: frozenset[str]

    @classmethod
    def of(cls, lines: Iterable[str]) -> Offered:
        """From what `FACTS_SCRIPT` printed."""
        words = [line.split(" ", 1) for line in lines if " " in line]
        return cls(
            locales=_LOCALES | {_plain(value) for kind, value in words if kind == "locale"},
            zones=frozenset(value for kind, value in words if kind == "zone"),
        )

    def check(self, spec: EnvironmentSpec, cores: int) -> None:
        """Raises SandboxError for a locale, time zone or number of cores that is not to be had: programs would silently
        take another. `cores` are those of the machine."""
        if _plain(spec.locale) not in self.locales:
            raise SandboxError(f"locale {spec.locale!r} is not offered: only {', '.join(sorted(self.locales))}")
        if spec.timezone != "UTC" and spec.timezone not in self.zones and not _RULE.fullmatch(spec.timezone):
            raise SandboxError(f"time zone {spec.timezone!r} is not offered: neither in /usr/share/zoneinfo nor a POSIX rule")
        if not 0 <= spec.cores <= cores:
            raise SandboxError(f"{spec.cores} cores are not offered: the machine has {cores}")
        if not 0 <= spec.hash_seed <= 0xFFFFFFFF:
            raise SandboxError(f"hash seed {spec.hash_seed} is not offered: only 0 to 4294967295")
        if not 0 <= spec.umask <= 0o777:
            raise SandboxError(f"umask {spec.umask:o} is not offered: only 0 to 777")


def _plain(locale: str) -> str:
    """`C.UTF-8` and `C.utf8` are one locale."""
    name, _, codeset = locale.partition(".")
    return f"{name}.{codeset.lower().replace('-', '')}" if codeset else name


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


def memory_of_all(limits: Limits) -> int:
    """Memory that all processes of a sandbox may hold together, bytes. A quarter more than one may map: a process that
    meets its own limit is told so by the kernel, and is not killed for what its neighbours hold beside it."""
    return limits.memory_bytes + limits.memory_bytes // 4


def version_of(name: str) -> str:
    """The Python version that image `name` asks for. Raises ImageError for a name that is not `python-3.N`."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ImageError(f"unknown image {name!r}: known are python-3.N, for example python-3.11")
    return match[1]
