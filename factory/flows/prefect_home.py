"""Prefect's surroundings, set before Prefect is imported: its home in the data folder, no telemetry.

A flow without `PREFECT_API_URL` starts a temporary server as a child process. When the flow is killed that child is
left behind; the next start ends it, and only it: a process whose environment names this very home
and whose parent is gone.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

SERVER_START_S = "120"
"""The first start on a new database was measured at 10 to 29 seconds; Prefect's default wait is 20."""


def settle(home: Path) -> None:
    """Point Prefect at `home`; an address of a server in the environment is kept, an empty one removed."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ["PREFECT_HOME"] = str(home)
    os.environ["DO_NOT_TRACK"] = "1"
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", SERVER_START_S)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    if not os.environ.get("PREFECT_API_URL"):
        os.environ.pop("PREFECT_API_URL", None)
        end_orphans(home)


def end_orphans(home: Path) -> int:
    """Kill temporary servers that a killed flow left on `home`; returns how many."""
    ended = 0
    for process in Path("/proc").glob("[0-9]*"):
        if _is_orphaned_server(process, home):
            os.kill(int(process.name), signal.SIGKILL)
            ended += 1
    return ended


def _is_orphaned_server(process: Path, home: Path) -> bool:
    try:
        environment = (process / "environ").read_bytes().split(b"\0")
        command = (process / "cmdline").read_bytes()
        parent = (process / "stat").read_text().rsplit(")", 1)[1].split()[1]
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return False
    ours = f"PREFECT_HOME={home}".encode() in environment and b"prefect.server" in command
    return ours and parent in _reapers()


def _reapers() -> set[str]:
    """Who inherits orphans here: pid 1, or a subreaper among our own ancestors."""
    reapers, current = {"1"}, os.getppid()
    while current > 1:
        reapers.add(str(current))
        try:
            current = int(Path(f"/proc/{current}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except FileNotFoundError:
            break
    return reapers
