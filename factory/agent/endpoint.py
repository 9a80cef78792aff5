"""The plain text client that generators use for language-model help: any OpenAI-compatible server, vLLM's among them.

Chat completions over httpx, which the client of policies uses too. The `openai` package would come on top of the
declared dependencies for one POST, and repeats requests where a budget can not see them.
"""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import httpx

from factory.agent.answers import AnswerCache
from factory.agent.budget import Budget, Usage
from factory.core.digest import Digest, digest_bytes
from factory.core.errors import EndpointError, UserError

logger = logging.getLogger(__name__)

ROUTE = "/chat/completions"
ANSWER_BYTES = 16 << 20
"""Most bytes of one answer."""
LONGEST_WAIT_S = 60.0
"""Most seconds between two attempts, whatever the server asks for."""
QUOTED = 300
"""Most characters that are quoted of a failure."""
BYTES_PER_TOKEN = 4
"""What a token is taken to be where a server tells no usage."""
TRANSIENT = frozenset({408, 409, 425, 429})
"""Refusals below 500 that pass by themselves."""


@dataclass(frozen=True, kw_only=True)
class EndpointConfig:
    """Language-model help for generators: any OpenAI-compatible server. Without an address no model is asked."""

    address: str = ""
    """Base address, version included: `http://127.0.0.1:8000/v1`; empty: no model is asked."""
    model: str = ""
    """Name of the model, as the server knows it."""
    key_variable: str = ""
    """Name of the environment variable with the API key, which is stored nowhere; empty: none is sent."""
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name under which the server wants the most tokens of an answer."""
    connections: int = 8
    """Requests in flight at once."""
    timeout_s: float = 120.0
    """Longest wait for one whole answer, seconds."""
    retries: int = 4
    """How often a request is sent again after a lost connection, a timeout, 429 or a 5xx answer."""
    backoff_s: float = 1.0
    """Wait before the first repetition, seconds; doubled each time, at most a minute, unless the server names its own."""
    requests: int = 2000
    """Most requests of one run, repetitions included; what is cached is free."""
    tokens: int = 2_000_000
    """Most tokens of one run, prompts and answers together; what is cached is free."""

    def __post_init__(self) -> None:
        if not self.address:
            return
        url = _url(self.address)
        if url is None or url.scheme not in ("http", "https") or not url.host:
            raise UserError("endpoint.address", self.address, "a base address like http://127.0.0.1:8000/v1")
        if url.userinfo or url.query or url.fragment:
            raise UserError("endpoint.address", f"{url.scheme}://{url.host}", "an address alone; a key goes by `key_variable`")
        if not self.model:
            raise UserError("endpoint.model", self.model, "the name of a model that the server offers")
        for name in ("connections", "requests", "tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"endpoint.{name}", getattr(self, name), "at least 1")
        if self.retries < 0 or self.backoff_s < 0 or self.timeout_s <= 0:
            raise UserError("endpoint", "retries, backoff_s, timeout_s", "no negative number, and time for an answer")


def _url(address: str) -> httpx.URL | None:
    try:
        return httpx.URL(address)
    except httpx.InvalidURL:
        return None


@dataclass(frozen=True, kw_only=True)
class Question:
    """One chat of a user with the model, and how the answer is sampled."""

    user: str
    system: str = ""
    """The system message; empty: none."""
    temperature: float
    max_tokens: int
    """Most tokens of the answer."""
    seed: int
    """Of the server's sampler, 0 to 2**31 - 1."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat in the protocol's form."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.user}]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the model said."""

    text: str
    finish: str
    """`stop`, `length` where `max_tokens` cut it off, or another word of the server."""
    prompt_tokens: int
    completion_tokens: int
    request: Digest
    """Of the request: model, messages and parameters."""
    model: str
    """The model that was asked."""


class Endpoint:
    """Asks one model; answers are kept in a folder by the digest of the request. Safe for threads and for processes that
    share the folder; the budget is this object's own."""

    def __init__(self, config: EndpointConfig, folder: Path) -> None:
        """Raises UserError when no address is set, or the variable of the key is not."""
        if not config.address:
            raise UserError("endpoint.address", "", "a base address like http://127.0.0.1:8000/v1")
        self.config = config
        self._key = _key(config)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        limits = httpx.Limits(max_connections=config.connections, max_keepalive_connections=config.connections)
        self._http = httpx.Client(timeout=config.timeout_s, limits=limits, headers=headers)
        self._address = config.address.rstrip("/") + ROUTE
        self._cache = AnswerCache(folder)
        self._budget = Budget(config.requests, config.tokens)

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self._budget.usage

    def ask(self, question: Question) -> Answer:
        """The answer to a question, from the cache where it was asked before, by any process.

        Raises BudgetSpent when the run may not send it, EndpointError when there is no answer to the end or the request is
        refused, UserError when the key or the model is.
        """
        body = self._body(question)
        request = digest_bytes(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
        with self._cache.one_at_a_time(request):
            held = self._cache.read(request)
            if held is not None:
                self._budget.count(cached=1)
                return Answer(**held)
            with self._budget.reserved(question.max_tokens + _estimate(question.system + question.user)):
                answer = self._answer(self._post(body), question, request)
                self._budget.count(prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens)
            return Answer(**self._cache.keep(request, asdict(answer)))

    def _body(self, question: Question) -> dict[str, Any]:
        return {
            "model": self.config.model,
            "messages": question.messages,
            "temperature": float(question.temperature),
            self.config.limit_field: question.max_tokens,
            "seed": question.seed,
        }

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        failure, wait = "", 0.0
        for attempt in range(self.config.retries + 1):
            time.sleep(wait)
            self._budget.send()
            wait = min(LONGEST_WAIT_S, self.config.backoff_s * 2**attempt)
            try:
                response = self._received(body)
            except httpx.HTTPError as error:
                failure = self._told(f"{type(error).__name__}: {error}")
            else:
                answer = _json_object(response)
                if answer is not None:
                    return answer
                failure = self._told(f"answered {response.status_code}: {self._shown(response.text)!r}")
                self._refused(response.status_code, failure)
                wait = _asked_wait(response.headers.get("retry-after", ""), wait)
            logger.warning("%s", failure)
        raise EndpointError(f"{failure}, {self.config.retries + 1} times")

    def _received(self, body: dict[str, Any]) -> httpx.Response:
        """The whole answer, within the time limit even when it trickles in. Raises httpx's errors."""
        deadline = time.monotonic() + self.config.timeout_s
        with self._http.stream("POST", self._address, json=body) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                size += len(part)
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout(f"no whole answer within {self.config.timeout_s} s")
                if size > ANSWER_BYTES:
                    raise httpx.ReadError(f"an answer of more than {ANSWER_BYTES} bytes")
                parts.append(part)
        headers = {name: value for name, value in response.headers.items() if name in ("content-type", "retry-after")}
        return httpx.Response(response.status_code, headers=headers, content=b"".join(parts))

    def _refused(self, status: int, failure: str) -> None:
        """Raise for an answer that another attempt would not change. 401 and 403 may quote the key: they are not shown."""
        if status in (401, 403):
            name = self.config.key_variable
            raise UserError("endpoint.key_variable", name, f"a variable with a key that {self._address} takes ({status})")
        if status == 404:
            raise UserError("endpoint.model", self.config.model, f"a model, at an address, that {self._address} offers (404)")
        if status < 500 and status not in TRANSIENT and not 200 <= status < 300:
            raise EndpointError(failure)

    def _told(self, text: str) -> str:
        """A failure in words."""
        return f"{self._address} {self._shown(text)}"

    def _shown(self, text: str) -> str:
        """The head of what a server said, without the key that it may have quoted."""
        return (text.replace(self._key, "***") if self._key else text)[:QUOTED]

    def _answer(self, value: dict[str, Any], question: Question, request: Digest) -> Answer:
        try:
            choice = value["choices"][0]
            text = choice["message"]["content"] or ""
            usage = value.get("usage") or {}
            return Answer(
                text=str(text),
                finish=str(choice.get("finish_reason")),
                prompt_tokens=int(usage.get("prompt_tokens") or _estimate(question.system + question.user)),
                completion_tokens=int(usage.get("completion_tokens") or _estimate(text)),
                request=request,
                model=self.config.model,
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise EndpointError(self._told(f"gave an answer of another form: {error!r}")) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _key(config: EndpointConfig) -> str:
    if not config.key_variable:
        return ""
    key = os.environ.get(config.key_variable, "").strip()
    if not key:
        raise UserError("endpoint.key_variable", config.key_variable, "the name of an environment variable that is set")
    if not key.isascii() or not key.isprintable():
        raise UserError("endpoint.key_variable", config.key_variable, "a variable with a key of plain characters")
    return key


def _json_object(response: httpx.Response) -> dict[str, Any] | None:
    """The body of a successful answer; None for any other answer, and for a body that is no JSON object."""
    try:
        value = response.json() if response.is_success else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _estimate(text: str) -> int:
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN + 1


def _asked_wait(header: str, wait: float) -> float:
    """What the server asks for in whole seconds, within bounds; else the wait that is due."""
    return min(LONGEST_WAIT_S, max(wait, float(header))) if header.isascii() and header.isdigit() else wait
