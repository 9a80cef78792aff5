"""A vLLM server over HTTP, one replica or several: token ids in, token ids and log-probabilities out.

The server is started as

    vllm serve MODEL --tokens-only --skip-tokenizer-init --logprobs-mode processed_logprobs

(or `--enable-scale-out` beside the text routes; where vLLM is the CPU package, whose command does not
start, `python -m vllm.entrypoints.openai.api_server --model MODEL` in place of `vllm serve MODEL`; on the
CPU also `--no-enable-chunked-prefill`). Its route is POST /inference/v1/generate.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

from factory.agent.clients.requests import check_ids, check_requests, completion, prefixes, regroup
from factory.agent.contract import Completion, Request
from factory.core.errors import PolicyError
from factory.core.policy import PolicyVersion

logger = logging.getLogger(__name__)

ROUTE = "/inference/v1/generate"
FLOOR = -9999.0
"""What the server sends in place of a log-probability that is minus infinity or no number."""

_OTHER_FORM = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What reading an answer of another form raises."""


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """Where the servers are and how patiently they are asked."""

    addresses: tuple[str, ...]
    """Base addresses of replicas that hold the same weights: `http://host:8000`."""
    vocabulary: int
    """Number of token ids that the model knows."""
    max_context: int
    """Most tokens of one sequence that the servers take, prompt and completion together."""
    connections: int = 64
    """Requests in flight at once, over all replicas."""
    timeout_s: float = 300.0
    """Longest wait for one answer, seconds."""
    retries: int = 4
    """How often a request is sent again after a lost connection, a timeout or a 5xx answer; each time to the next replica."""
    backoff_s: float = 0.5
    """Wait before the first repetition, seconds; doubled each time, at most sixteenfold."""
    api_key: str = field(default="", repr=False)
    """Sent as a bearer token where not empty."""


class ServerClient:
    """Requests go round robin over the replicas. Safe for several threads at once."""

    elsewhere = True

    def __init__(self, config: ServerConfig, version: PolicyVersion) -> None:
        self.config, self.version = config, version
        headers = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
        limits = httpx.Limits(max_connections=config.connections, max_keepalive_connections=config.connections)
        self._http = httpx.Client(timeout=config.timeout_s, limits=limits, headers=headers)
        self._pool = ThreadPoolExecutor(config.connections, thread_name_prefix="policy")
        self._mode_checked = False

    def complete(self, requests: Sequence[Request], *, temperature: float, stop: frozenset[int]) -> list[Completion]:
        """One completion per request, in order. Where a server failed to the end the completion carries an error.

        Raises PolicyError when no request was answered, and when a request was refused as wrong.
        """
        check_requests(requests, self.config.vocabulary, self.config.max_context)
        self._check_mode(temperature)
        common = {"temperature": temperature, "stop_token_ids": sorted(stop), "logprobs": 0, "detokenize": False}
        bodies = [(request.prompt, {**common, "seed": request.seed, "max_tokens": request.max_tokens}) for request in requests]
        answers = self._ask(bodies)
        return [
            Completion(ids=(), logprobs=(), finish="length", error=str(answer))
            if isinstance(answer, PolicyError)
            else _completion(answer, stop)
            for answer in answers
        ]

    def score(self, sequences: Sequence[tuple[int, ...]], *, temperature: float) -> list[list[float]]:
        """Log-probability of each token after the first, at `temperature`. Raises PolicyError when one is missing."""
        self._check_mode(temperature)
        return self._score(sequences, temperature)

    def _score(self, sequences: Sequence[tuple[int, ...]], temperature: float) -> list[list[float]]:
        check_ids(sequences, self.config.vocabulary)
        pairs = prefixes(sequences)
        # The answer shows as many candidates as were asked for, the sampled one first: asked for twice, the id is among them.
        common = {"temperature": temperature, "seed": 0, "max_tokens": 1, "logprobs": 2, "detokenize": False}
        answers = self._ask([(prefix, {**common, "logprob_token_ids": [following] * 2}) for prefix, following in pairs])
        values = []
        for answer, (_, following) in zip(answers, pairs, strict=True):
            if isinstance(answer, PolicyError):
                raise answer
            values.append(_candidate(answer, following))
        return regroup(values, sequences)

    def _check_mode(self, temperature: float) -> None:
        """Raise PolicyError when the servers' log-probabilities ignore the temperature (their default).

        Once, at the first temperature other than 1: then the same tokens have to score differently.
        """
        if self._mode_checked or temperature == 1.0:
            return
        probe = [(0, id) for id in range(min(8, self.config.vocabulary))] * len(self.config.addresses)
        plain, flat = self._score(probe, 1.0), self._score(probe, 2.0)
        if all(math.isclose(a, b, abs_tol=1e-4) for [a], [b] in zip(plain, flat, strict=True)):
            raise PolicyError("the server ignores the temperature: start it with --logprobs-mode processed_logprobs")
        self._mode_checked = True

    def _ask(self, bodies: Sequence[tuple[tuple[int, ...], dict[str, object]]]) -> list[dict[str, Any] | PolicyError]:
        """The answer to each body, or why there is none. Raises PolicyError when there is no answer at all."""
        answers = list(self._pool.map(self._post, range(len(bodies)), bodies))
        failures = [answer for answer in answers if isinstance(answer, PolicyError)]
        if failures and len(failures) == len(answers):
            raise failures[0]
        return answers

    def _post(self, number: int, body: tuple[tuple[int, ...], dict[str, object]]) -> dict[str, Any] | PolicyError:
        prompt, parameters = body
        failure = ""
        for attempt in range(self.config.retries + 1):
            if attempt:
                time.sleep(self.config.backoff_s * min(16, 2 ** (attempt - 1)))
            address = self.config.addresses[(number + attempt) % len(self.config.addresses)].rstrip("/")
            try:
                response = self._http.post(address + ROUTE, json={"token_ids": prompt, "sampling_params": parameters})
                if response.is_success:
                    answer: dict[str, Any] = response.json()
                    return answer
                failure = f"{address}{ROUTE} answered {response.status_code}: {response.text[:200]}"
            except (httpx.TransportError, ValueError) as error:
                failure = f"{address}{ROUTE}: {type(error).__name__}: {error}"
            else:
                if response.status_code < 500:
                    raise PolicyError(failure + (", start it with --tokens-only" if response.status_code == 404 else ""))
            logger.warning("%s", failure)
        return PolicyError(f"{failure}, {self.config.retries + 1} times")

    def close(self) -> None:
        """Close the connections."""
        self._pool.shutdown()
        self._http.close()


def _completion(answer: dict[str, Any], stop: frozenset[int]) -> Completion:
    try:
        choice = answer["choices"][0]
        values = [math.nan if item["logprob"] <= FLOOR else item["logprob"] for item in choice["logprobs"]["content"]]
        details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
        return completion(choice["token_ids"], values, stop, details.get("cached_tokens") or 0)
    except _OTHER_FORM as error:
        return Completion(ids=(), logprobs=(), finish="length", error=f"the server's answer has another form: {error!r}")


def _candidate(answer: dict[str, Any], id: int) -> float:
    try:
        found = {item["token_id"]: item["logprob"] for item in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]}
        return float(found[id])
    except _OTHER_FORM as error:
        raise PolicyError(f"the server gave no log-probability for token {id}: {error!r}") from error
