"""The client of a server against a real vLLM server of a random tiny model."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from transformers import LlamaForCausalLM

from factory.agent.clients.http import ServerClient, ServerConfig
from factory.agent.contract import Request
from tests.factory.agent.clients.llamas import CONTEXT, VOCABULARY, make_llama, torch_logprobs
from tests.factory.agent.samples import VERSION

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

STARTS_S = 180
ARGUMENTS = (
    "--tokens-only --skip-tokenizer-init --logprobs-mode processed_logprobs --dtype float32 --enforce-eager "
    f"--max-model-len {CONTEXT} --kv-cache-memory-bytes 134217728 --no-enable-chunked-prefill --max-num-batched-tokens 4096 "
    "--host 127.0.0.1"
).split()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, LlamaForCausalLM]]:
    folder = tmp_path_factory.mktemp("served")
    model = make_llama(folder / "model", tied=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder / "model"), "--port", str(port)]
    settings = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    log = folder / "server.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(
            argv + ARGUMENTS, env=os.environ | settings, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        address = f"http://127.0.0.1:{port}"
        _await(server, address, log)
        yield address, model
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


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_a_real_servers_tokens_and_scores_are_torchs(served: tuple[str, LlamaForCausalLM], temperature: float) -> None:
    address, model = served
    client = ServerClient(ServerConfig(addresses=(address,), vocabulary=VOCABULARY, max_context=CONTEXT), VERSION)
    asked = [Request(prompt=tuple(range(20, 26 + seed)), seed=seed, max_tokens=20) for seed in range(24)]
    made = client.complete(asked, temperature=temperature, stop=frozenset({7, 8}))
    again = client.complete(asked, temperature=temperature, stop=frozenset({7, 8}))
    scored = client.score([asked[0].prompt + made[0].ids], temperature=temperature)
    client.close()
    assert {completion.error for completion in made} == {""}
    assert [completion.ids for completion in made] == [completion.ids for completion in again]
    assert len({completion.ids for completion in made}) == len(made)
    for request, completion in zip(asked, made, strict=True):
        expected = torch_logprobs(model, request.prompt + completion.ids, temperature)
        assert completion.logprobs == pytest.approx(expected[len(request.prompt) - 1 :], abs=1e-4)
    assert scored[0] == pytest.approx(torch_logprobs(model, asked[0].prompt + made[0].ids, temperature), abs=1e-4)
