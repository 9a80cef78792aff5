"""Prefect's surroundings, set before Prefect is imported: its home in the data folder, no telemetry.

A flow without `PREFECT_API_URL` starts a temporary server as a child process. When the flow is killed that child is
left behind; the next start ends it, and only it: a process whose environment names this very home
and whose parent is gone. Temporary servers schedule nothing, so that `factory serve` starts a whole one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from factory.core.errors import FactoryError

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
    os.environ["PREFECT_SERVER_MEMO_STORE_PATH"] = str(home / "memo_store.toml")  # its default is in the user's own home
    if not os.environ.get("PREFECT_API_URL"):
        os.environ.pop("PREFECT_API_URL", None)
        end_orphans(home)


@contextmanager
def scheduling_server() -> Iterator[str]:
    """The address of a Prefect server that schedules: the one that the environment names, or one started here and ended after.

    Call `settle` before. Raises FactoryError when it does not start.
    """
    named = os.environ.get("PREFECT_API_URL")
    if named:
        yield named
        return
    port = _free_port()
    program = ["-m", "uvicorn", "--factory", "prefect.server.api.server:create_app", "--log-level", "error"]
    command = [sys.executable, *program, "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_FINAL": "1"}
    with subprocess.Popen(command, env=environment, start_new_session=True) as server:
        try:
            os.environ["PREFECT_API_URL"] = address = f"http://127.0.0.1:{port}/api"
            _wait_until_healthy(server, address)
            yield address
        finally:
            del os.environ["PREFECT_API_URL"]
            server.terminate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_until_healthy(server: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + float(os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"])
    while server.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}/health", timeout=5).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    raise FactoryError(f"Prefect's server did not start at {address}")


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
