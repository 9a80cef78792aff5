"""What an image name becomes on this machine: the host's `/usr` read-only, a small `/etc`, and one Python."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from factory.core.digest import Json, digest_of
from factory.core.errors import ImageError
from sandboxes.bubblewrap.layout import EMPTY
from sandboxes.contract import ResolvedImage
from sandboxes.spec import ETC, FACTS_SCRIPT, PYTHON_PROBE, TOOLS, Offered, version_of

PYTHON_PREFIX = "/opt/python"
"""Where an interpreter from outside `/usr` stands in the sandbox."""

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, kw_only=True)
class BubblewrapImage:
    """A resolved image, and what its sandboxes need to know of it."""

    resolved: ResolvedImage
    environment: dict[str, str]
    """PATH, and what the interpreter needs to find its library."""
    offered: Offered
    """Its locales and time zones: the host's."""


def python_home(version: str) -> Path:
    """Prefix of a complete interpreter of `version`: the system's where it has one, else the one that runs this.

    Raises ImageError when neither offers it.
    """
    system = Path(f"/usr/bin/python{version}")
    if system.exists() and _probe(system):
        return Path("/usr")
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        return Path(sys.base_prefix).resolve()
    raise ImageError(f"no Python {version}: install it below /usr, or run envfactory with it")


def _probe(python: Path) -> str | None:
    """Version of `python`, when it starts and has the whole standard library that tasks use."""
    ended = subprocess.run([python, "-I", "-S", "-c", PYTHON_PROBE], capture_output=True, text=True, check=False, env={})
    return ended.stdout.split()[0] if ended.returncode == 0 else None


def resolve(name: str) -> BubblewrapImage:
    """Look at the runtime of this machine. Raises ImageError when it lacks what the image must offer."""
    version = version_of(name)
    home = python_home(version)
    python = home / "bin" / f"python{version}"
    programs = {tool: _program(tool) for tool in TOOLS}
    full = _probe(python)
    if full is None:
        raise ImageError(f"{python} does not start, or its standard library is not complete")
    versions = {"python": full, "bash": _first_line([str(programs["bash"]), "--version"])}
    contents = {tool: _hash(path) for tool, path in programs.items()} | {"python": _hash(python)}
    contents |= {library.name: _hash(library) for library in _libraries(home, version)}
    layout: Json = {"name": name, "versions": versions, "contents": contents, "etc": dict(ETC), "prefix": str(_inside(home))}
    return BubblewrapImage(
        resolved=ResolvedImage(name=name, digest=digest_of(layout), versions=versions),
        environment=_environment(home),
        offered=Offered.of(_lines(["/bin/sh", "-c", FACTS_SCRIPT])),
    )


def _program(tool: str) -> Path:
    found = shutil.which(tool, path=_SYSTEM_PATH.partition(":")[2])
    if found is None:
        raise ImageError(f"this machine has no {tool} in /usr/bin or /bin")
    return Path(found)


def _first_line(command: list[str]) -> str:
    return (_lines(command) or [""])[0]


def _lines(command: list[str]) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _libraries(home: Path, version: str) -> list[Path]:
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    found = [home / "lib" / f"libpython{version}.so.1.0"]
    found += [Path(folder) / "libc.so.6" for folder in (f"/usr/lib/{multiarch}", "/usr/lib64", "/lib64")]
    return [path for path in found if path.exists()][:2]


def _inside(home: Path) -> Path:
    return home if home in (Path("/usr"), Path("/usr/local")) else Path(PYTHON_PREFIX)


def _environment(home: Path) -> dict[str, str]:
    inside = _inside(home)
    if inside == Path("/usr"):
        return {"PATH": _SYSTEM_PATH}
    return {"PATH": f"{inside}/bin:{_SYSTEM_PATH}", "LD_LIBRARY_PATH": f"{inside}/lib"}


def host_binds(home: Path) -> list[tuple[str, str]]:
    """Host folders that the runtime needs, and where the helper offers them."""
    binds = [("/usr", "/usr")]
    if _inside(home) == Path(PYTHON_PREFIX):
        binds.append((str(home), PYTHON_PREFIX))
    binds += [(name, name) for name in ("/bin", "/sbin", "/lib", "/lib64", "/lib32") if Path(name).is_dir() and not _link(name)]
    if Path("/etc/alternatives").is_dir():
        binds.append(("/etc/alternatives", "/etc/alternatives"))
    return binds


def host_links() -> list[tuple[str, str]]:
    """Links at the root of the runtime: `/bin` and its like, where they are links here."""
    return [(name, str(Path(name).readlink())) for name in ("/bin", "/sbin", "/lib", "/lib64", "/lib32") if _link(name)]


def _link(name: str) -> bool:
    return Path(name).is_symlink()


def runtime(home: Path, version: str) -> list[tuple[str, str]]:
    """Folders of the helper's root and where every sandbox has them, outer ones first; what is not to be seen is empty."""
    inside = _inside(home)
    parts = [(target, target) for _, target in host_binds(home)]
    hidden = [f"{inside}/lib/python{version}/site-packages"] if inside != Path("/usr") else []
    if inside != Path("/usr/local"):
        hidden.append("/usr/local")
    hidden.append("/usr/lib/python3/dist-packages")
    for folder in hidden:
        outside = Path(folder.replace(PYTHON_PREFIX, str(home), 1) if folder.startswith(PYTHON_PREFIX) else folder)
        if outside.is_dir():
            parts.append((EMPTY, folder))
    return parts
