"""What a run may ask of an endpoint, and what it used: requests and tokens, counted over threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from factory.core.errors import BudgetSpent


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a run used of the endpoint so far."""

    requests: int = 0
    """Requests sent, repetitions included."""
    cached: int = 0
    """Questions answered from the cache."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Budget:
    """Bounds of one run. A request that could pass them is not sent. Safe for threads."""

    def __init__(self, requests: int, tokens: int) -> None:
        self._requests, self._tokens = requests, tokens
        self._lock = threading.Lock()
        self._usage = Usage()
        self._reserved = 0
        """Tokens that answers under way may still take."""

    @property
    def usage(self) -> Usage:
        with self._lock:
            return self._usage

    def count(self, *, cached: int = 0, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        """Add to what was used."""
        with self._lock:
            self._usage = replace(
                self._usage,
                cached=self._usage.cached + cached,
                prompt_tokens=self._usage.prompt_tokens + prompt_tokens,
                completion_tokens=self._usage.completion_tokens + completion_tokens,
            )

    def send(self) -> None:
        """Count one request that is about to be sent. Raises BudgetSpent."""
        with self._lock:
            if self._usage.requests >= self._requests:
                raise BudgetSpent(f"endpoint.requests: all {self._requests} of the run are sent")
            self._usage = replace(self._usage, requests=self._usage.requests + 1)

    @contextmanager
    def reserved(self, tokens: int) -> Iterator[None]:
        """Keep room for an exchange of at most so many tokens while it lasts. Raises BudgetSpent where there is none."""
        with self._lock:
            if self._usage.tokens + self._reserved + tokens > self._tokens:
                raise BudgetSpent(
                    f"endpoint.tokens: {self._usage.tokens} of {self._tokens} used, {self._reserved} under way; "
                    f"a request of up to {tokens} is not sent"
                )
            self._reserved += tokens
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= tokens
