"""What every client checks before it submits, and after it received."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from factory.agent.contract import Completion, Request
from factory.core.errors import PolicyError


def check_ids(sequences: Iterable[Sequence[int]], vocabulary: int) -> None:
    """Raise PolicyError unless every sequence has ids and all are in `range(vocabulary)`: an engine may die of others."""
    for ids in sequences:
        if not ids:
            raise PolicyError("an empty sequence can not be sampled from")
        if min(ids) < 0 or max(ids) >= vocabulary:
            wrong = next(id for id in ids if not 0 <= id < vocabulary)
            raise PolicyError(f"token id {wrong} is outside the vocabulary of {vocabulary}")


def check_requests(requests: Sequence[Request], vocabulary: int, max_context: int) -> None:
    """Raise PolicyError for ids outside the vocabulary and for sequences that could outgrow the context."""
    check_ids((request.prompt for request in requests), vocabulary)
    for request in requests:
        if request.max_tokens < 1 or len(request.prompt) + request.max_tokens > max_context:
            raise PolicyError(
                f"{len(request.prompt)} prompt tokens and {request.max_tokens} new ones do not fit a context of {max_context}"
            )


def completion(ids: Sequence[int], logprobs: Sequence[float], stop: frozenset[int], cached_tokens: int) -> Completion:
    """A completion; one with a log-probability that is no finite number, or none at all, carries an error instead of ids."""
    if not ids or len(ids) != len(logprobs):
        return Completion(ids=(), logprobs=(), finish="length", error=f"{len(ids)} ids with {len(logprobs)} log-probabilities")
    if not all(math.isfinite(value) for value in logprobs):
        return Completion(ids=(), logprobs=(), finish="length", error="a log-probability is not finite")
    finish = "stop" if ids[-1] in stop else "length"
    return Completion(ids=tuple(ids), logprobs=tuple(logprobs), finish=finish, cached_tokens=cached_tokens)


def prefixes(sequences: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], int]]:
    """Every (prefix, next id) of every sequence, in order: what is scored."""
    return [(ids[:end], ids[end]) for ids in sequences for end in range(1, len(ids))]


def regroup(values: Sequence[float], sequences: Sequence[tuple[int, ...]]) -> list[list[float]]:
    """One list for each sequence out of the values of `prefixes`."""
    rest = iter(values)
    return [[next(rest) for _ in ids[1:]] for ids in sequences]
