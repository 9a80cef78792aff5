"""The endpoint's client against the text routes of a real vLLM server: a random tiny model with a byte-level tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from factory.agent.endpoint import Endpoint, EndpointConfig, Question
from factory.core.errors import EndpointError, UserError
from tests.factory.agent.clients.llamas import CONTEXT, make_llama
from tests.factory.agent.clients.servers import served

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"
ARGUMENTS = (
    "--served-model-name tiny --dtype float32 --enforce-eager "
    f"--max-model-len {CONTEXT} --kv-cache-memory-bytes 134217728 --no-enable-chunked-prefill --max-num-batched-tokens 4096"
).split()


def save_tokenizer(folder: Path) -> None:
    """One token for each byte and one for the end, with a chat template that spells roles out."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={piece: number for number, piece in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>")])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("chatting")
    make_llama(folder / "model", tied=True)
    save_tokenizer(folder / "model")
    with served(folder / "model", ARGUMENTS) as address:
        yield f"{address}/v1"


def test_a_real_server_answers_counts_and_samples_by_seed(address: str, tmp_path: Path) -> None:
    asked = [Question(user="Say hello.", temperature=1.0, max_tokens=12, seed=seed) for seed in (1, 2)]
    texts = []
    for folder in ("first", "second"):
        endpoint = Endpoint(EndpointConfig(address=address, model="tiny"), tmp_path / folder)
        answers = [endpoint.ask(question) for question in asked]
        assert answers == [endpoint.ask(question) for question in asked]
        assert endpoint.usage.requests == endpoint.usage.cached == 2
        assert {answer.prompt_tokens for answer in answers} == {len("user: Say hello.\nassistant:")}
        assert all(0 < answer.completion_tokens <= 12 for answer in answers)
        endpoint.close()
        texts.append([answer.text for answer in answers])
    assert texts[0] == texts[1]
    assert texts[0][0] != texts[0][1]


def test_what_a_real_server_refuses(address: str, tmp_path: Path) -> None:
    endpoint = Endpoint(EndpointConfig(address=address, model="tiny"), tmp_path)
    with pytest.raises(EndpointError, match="answered 400"):
        endpoint.ask(Question(user="x" * 2 * CONTEXT, temperature=1.0, max_tokens=4, seed=1))
    endpoint.close()
    other = Endpoint(EndpointConfig(address=address, model="huge"), tmp_path)
    with pytest.raises(UserError, match=r"endpoint\.model: 'huge'"):
        other.ask(Question(user="Hello?", temperature=1.0, max_tokens=4, seed=1))
    other.close()
