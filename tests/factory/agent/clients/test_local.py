"""The real engine in process, on random tiny models with tied and untied embeddings."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from factory.agent.clients.local import LocalClient, LocalConfig
from factory.agent.contract import Request
from factory.core.errors import PolicyError
from tests.factory.agent.clients.llamas import CONTEXT, VOCABULARY, make_llama, torch_logprobs
from tests.factory.agent.samples import VERSION

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

STOP = frozenset({7, 8})


def requests(count: int, max_tokens: int = 30, shared: bool = False) -> list[Request]:
    draw = random.Random(3)
    prompts = [
        tuple(draw.randrange(9, VOCABULARY) for _ in range(40 if shared else 5 + number % 60)) for number in range(count)
    ]
    return [
        Request(prompt=prompts[0] if shared else prompt, seed=1000 + number, max_tokens=max_tokens)
        for number, prompt in enumerate(prompts)
    ]


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalClient, LlamaForCausalLM]]:
    folder = tmp_path_factory.mktemp("llama")
    model = make_llama(folder, tied=request.param)
    environment, states, threads = dict(os.environ), (random.getstate(), torch.get_rng_state()), torch.set_num_threads
    client = LocalClient(folder, VERSION, LocalConfig(max_context=CONTEXT, kv_cache_gib=0.25))
    assert dict(os.environ) == environment
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert torch.set_num_threads is threads
    yield client, model
    client.close()


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_sampled_logprobs_are_torchs(loaded: tuple[LocalClient, LlamaForCausalLM], temperature: float) -> None:
    client, model = loaded
    asked = requests(64)
    made = client.complete(asked, temperature=temperature, stop=STOP)
    assert {completion.finish for completion in made} == {"stop", "length"}
    for request, completion in zip(asked, made, strict=True):
        assert len(completion.ids) == len(completion.logprobs) <= request.max_tokens
        assert STOP.isdisjoint(completion.ids[:-1])
        assert (completion.ids[-1] in STOP) == (completion.finish == "stop")
        expected = torch_logprobs(model, request.prompt + completion.ids, temperature)[len(request.prompt) - 1 :]
        assert completion.logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_scores_are_torchs(loaded: tuple[LocalClient, LlamaForCausalLM], temperature: float) -> None:
    client, model = loaded
    sequences = [request.prompt for request in requests(6)] + [(9, 10)]
    scored = client.score(sequences, temperature=temperature)
    for ids, values in zip(sequences, scored, strict=True):
        assert values == pytest.approx(torch_logprobs(model, ids, temperature), abs=1e-4)


def test_each_request_has_its_own_seed(loaded: tuple[LocalClient, LlamaForCausalLM]) -> None:
    client, _ = loaded
    asked = requests(16, shared=True)
    made = client.complete(asked, temperature=1.0, stop=STOP)
    assert len({completion.ids for completion in made}) > 12
    [twin, other] = client.complete([asked[0], replace(asked[1], seed=asked[0].seed)], temperature=1.0, stop=STOP)
    assert twin.ids == other.ids


def test_the_same_batch_gives_the_same_ids(loaded: tuple[LocalClient, LlamaForCausalLM]) -> None:
    client, _ = loaded
    asked = requests(32)
    client.reset_prefix_cache()
    first = client.complete(asked, temperature=1.0, stop=STOP)
    client.reset_prefix_cache()
    assert client.complete(asked, temperature=1.0, stop=STOP) == first


def test_the_prefix_cache_is_used_and_forgotten(loaded: tuple[LocalClient, LlamaForCausalLM]) -> None:
    client, _ = loaded
    asked = [replace(requests(1)[0], prompt=tuple(range(100, 180)))]
    client.complete(asked, temperature=1.0, stop=STOP)
    [warm] = client.complete(asked, temperature=1.0, stop=STOP)
    assert warm.cached_tokens >= 64
    client.reset_prefix_cache()
    [cold] = client.complete(asked, temperature=1.0, stop=STOP)
    assert cold.cached_tokens == 0


def test_more_prompt_tokens_than_one_pass_takes(loaded: tuple[LocalClient, LlamaForCausalLM]) -> None:
    """Prompts cut into chunks would stop a CPU engine that samples with seeds."""
    client, model = loaded
    draw = random.Random(5)
    asked = [
        Request(prompt=tuple(draw.randrange(9, VOCABULARY) for _ in range(450)), seed=number, max_tokens=2)
        for number in range(30)
    ]
    made = client.complete(asked, temperature=0.7, stop=STOP)
    expected = torch_logprobs(model, asked[-1].prompt + made[-1].ids, 0.7)[449:]
    assert made[-1].logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Request(prompt=(9, VOCABULARY), seed=0, max_tokens=1), f"id {VOCABULARY} is outside"),
        (Request(prompt=(-1, 9), seed=0, max_tokens=1), "id -1 is outside"),
        (Request(prompt=(), seed=0, max_tokens=1), "empty"),
        (Request(prompt=(9,) * CONTEXT, seed=0, max_tokens=1), "do not fit"),
        (Request(prompt=(9,), seed=0, max_tokens=0), "do not fit"),
    ],
)
def test_wrong_requests_never_reach_the_engine(
    loaded: tuple[LocalClient, LlamaForCausalLM], request_: Request, error: str
) -> None:
    client, _ = loaded
    good = requests(1)
    with pytest.raises(PolicyError, match=error):
        client.complete([*good, request_], temperature=1.0, stop=STOP)
    assert client.complete(good, temperature=1.0, stop=STOP)[0].ids


def test_weights_without_numbers_give_errors_not_tokens(loaded: tuple[LocalClient, LlamaForCausalLM]) -> None:
    client, model = loaded
    state = {name: value.clone() for name, value in model.state_dict().items()}
    broken = {name: value * math.nan if name == "model.norm.weight" else value for name, value in state.items()}
    client.engine.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(broken.items())})
    try:
        made = client.complete(requests(2), temperature=1.0, stop=STOP)
    finally:
        client.engine.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(state.items())})
        client.reset_prefix_cache()
    assert [(completion.ids, completion.error) for completion in made] == [((), "a log-probability is not finite")] * 2


def test_a_folder_without_a_model_is_a_policy_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="does not load"):
        LocalClient(tmp_path, VERSION, LocalConfig())
