"""Real vLLM servers on ports of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

STARTS_S = 180


@contextmanager
def served(model: Path, arguments: Sequence[str]) -> Iterator[str]:
    """The base address of a server of the model while it runs; its log is beside the model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    module = ["-m", "vllm.entrypoints.openai.api_server"]
    argv = [sys.executable, *module, "--model", str(model), "--host", "127.0.0.1", "--port", str(port), *arguments]
    settings = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    log = model.with_suffix(".log")
    with log.open("wb") as stream:
        server = subprocess.Popen(
            argv, env=os.environ | settings, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        address = f"http://127.0.0.1:{port}"
        _await(server, address, log)
        yield address
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _await(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + STARTS_S
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()[-3000:]
        try:
            if httpx.get(f"{address}/health").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.3)
    raise AssertionError(f"no server after {STARTS_S} s: {log.read_text()[-3000:]}")
