"""vLLM in this process, on the CPU or a GPU.

What vLLM leaves in the process is undone where it can be: environment variables (an `LD_PRELOAD`
among them that every child would inherit), the states of the random generators, and
`torch.set_num_threads`, which vLLM replaces by nothing. What stays: an initialised one-process
torch.distributed group, and the level of the `vllm` logger.
"""

from __future__ import annotations

import logging
import os
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from factory.agent.clients.requests import check_ids, check_requests, completion, prefixes, regroup
from factory.agent.contract import Completion, Request
from factory.core.errors import PolicyError
from factory.core.policy import PolicyVersion

if TYPE_CHECKING:
    from vllm import LLM, RequestOutput, SamplingParams

CPU_BLOCK = 32
"""Tokens of one block of the CPU's prefix cache: the least it offers. The default, 128, exceeds a tiny policy's prompts."""


@dataclass(frozen=True, kw_only=True)
class LocalConfig:
    """How the engine is set up."""

    dtype: Literal["float32", "bfloat16"] = "float32"
    kv_cache_gib: float = 1.0
    """Memory for keys and values, GiB."""
    max_context: int = 2048
    """Most tokens of one sequence, prompt and completion together."""
    sequences: int = 256
    """Most sequences decoded at once; more wait."""
    batched_tokens: int = 8192
    """Most tokens of one forward pass (at least `max_context`: a prompt is never cut into chunks)."""
    threads: int = 1
    """Threads of torch in this process."""


class LocalClient:
    """One vLLM engine in this process. Not safe for several threads at once."""

    def __init__(self, policy_dir: Path, version: PolicyVersion, config: LocalConfig | None = None) -> None:
        """Load the model in `policy_dir` (a folder as `transformers` writes it). Raises PolicyError when it does not load."""
        self.config = config or LocalConfig()
        self.version = version
        self.engine = _load(policy_dir, self.config)
        self.elsewhere = _on_accelerator()
        self.vocabulary: int = self.engine.model_config.get_vocab_size()

    def set_version(self, version: PolicyVersion) -> None:
        """Name the weights that the engine now holds."""
        self.version = version

    def reset_prefix_cache(self) -> None:
        """Forget the keys and values of earlier prompts: they belong to earlier weights. Raises PolicyError when refused."""
        if not self.engine.reset_prefix_cache():
            raise PolicyError("the prefix cache was not reset: requests are running")

    def complete(self, requests: Sequence[Request], *, temperature: float, stop: frozenset[int]) -> list[Completion]:
        """One completion per request, in order, log-probabilities at `temperature`. Raises PolicyError."""
        check_requests(requests, self.vocabulary, self.config.max_context)
        parameters = [
            _sampling(temperature, request.seed, max_tokens=request.max_tokens, stop_token_ids=sorted(stop), logprobs=0)
            for request in requests
        ]
        outputs = self._generate([request.prompt for request in requests], parameters)
        return [_completion(output, stop) for output in outputs]

    def score(self, sequences: Sequence[tuple[int, ...]], *, temperature: float) -> list[list[float]]:
        """Log-probability of each token after the first, at `temperature`, through the path that samples.

        The engine's prompt log-probabilities ignore the temperature; so each prefix asks for one
        token and for the log-probability of the token that follows it in the sequence.
        """
        check_ids(sequences, self.vocabulary)
        pairs = prefixes(sequences)
        parameters = [_sampling(temperature, 0, max_tokens=1, logprob_token_ids=[following]) for _, following in pairs]
        outputs = self._generate([prefix for prefix, _ in pairs], parameters)
        values = [_rows(output)[0][following].logprob for output, (_, following) in zip(outputs, pairs, strict=True)]
        return regroup(values, sequences)

    def _generate(self, prompts: Sequence[tuple[int, ...]], parameters: list[SamplingParams]) -> list[RequestOutput]:
        if not prompts:
            return []
        inputs: list[Any] = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        try:
            return self.engine.generate(inputs, parameters, use_tqdm=False)
        except Exception as error:  # the boundary to the engine: whatever it raises, sampling failed
            raise PolicyError(f"the engine failed: {error!r}") from error

    def close(self) -> None:
        """Free the engine."""
        self.engine.llm_engine.engine_core.shutdown()


def _on_accelerator() -> bool:
    from vllm.platforms import current_platform

    return not current_platform.is_cpu()


def _sampling(temperature: float, seed: int, **more: Any) -> SamplingParams:
    from vllm import SamplingParams

    return SamplingParams(temperature=temperature, seed=seed, detokenize=False, **more)


def _completion(output: RequestOutput, stop: frozenset[int]) -> Completion:
    ids = list(output.outputs[0].token_ids)
    values = [row[id].logprob for row, id in zip(_rows(output), ids, strict=True)]
    return completion(ids, values, stop, output.num_cached_tokens or 0)


def _rows(output: RequestOutput) -> Any:
    """For each sampled token a mapping of ids to their log-probabilities; asked for in every request."""
    rows = output.outputs[0].logprobs
    assert rows is not None
    return rows


def _load(policy_dir: Path, config: LocalConfig) -> LLM:
    with _undone(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the engine and what it imports
        os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
        os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
        import torch

        torch.set_num_threads(config.threads)
        logging.getLogger("vllm").setLevel(logging.ERROR)
        from vllm import LLM
        from vllm.platforms import current_platform

        cpu = current_platform.is_cpu()
        blocks: dict[str, Any] = {"block_size": CPU_BLOCK} if cpu else {}
        try:
            return LLM(
                str(policy_dir),
                dtype=config.dtype,
                skip_tokenizer_init=True,
                enforce_eager=cpu,
                logprobs_mode="processed_logprobs",
                kv_cache_memory_bytes=round(config.kv_cache_gib * 2**30),
                max_model_len=config.max_context,
                max_num_seqs=config.sequences,
                # A prompt cut into chunks takes back its generator's draw, which CPU generators do not support:
                # seeded requests would stop the engine.
                enable_chunked_prefill=False,
                max_num_batched_tokens=max(config.batched_tokens, config.max_context),
                disable_log_stats=True,
                use_tqdm_on_load=False,
                **blocks,
            )
        except Exception as error:  # the boundary to the engine: whatever it raises, there is no policy
            raise PolicyError(f"{policy_dir} does not load: {error!r}") from error


@contextmanager
def _undone() -> Iterator[None]:
    """Put back the environment, the random states and `torch.set_num_threads` that loading an engine changes."""
    import numpy
    import torch

    environment, set_threads = dict(os.environ), torch.set_num_threads
    states = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        torch.set_num_threads = set_threads
        random.setstate(states[0])
        numpy.random.set_state(states[1])
        torch.set_rng_state(states[2])
