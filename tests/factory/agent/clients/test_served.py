"""The client of a server against a real vLLM server of a random tiny model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from transformers import LlamaForCausalLM

from factory.agent.clients.http import ServerClient, ServerConfig
from factory.agent.contract import Request
from tests.factory.agent.clients.llamas import CONTEXT, VOCABULARY, make_llama, torch_logprobs
from tests.factory.agent.clients.servers import served
from tests.factory.agent.samples import VERSION

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

ARGUMENTS = (
    "--tokens-only --skip-tokenizer-init --logprobs-mode processed_logprobs --dtype float32 --enforce-eager "
    f"--max-model-len {CONTEXT} --kv-cache-memory-bytes 134217728 --no-enable-chunked-prefill --max-num-batched-tokens 4096"
).split()


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, LlamaForCausalLM]]:
    folder = tmp_path_factory.mktemp("served")
    model = make_llama(folder / "model", tied=True)
    with served(folder / "model", ARGUMENTS) as address:
        yield address, model


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_a_real_servers_tokens_and_scores_are_torchs(replica: tuple[str, LlamaForCausalLM], temperature: float) -> None:
    address, model = replica
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
