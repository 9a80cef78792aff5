"""The contract of a generator: candidates and demonstrations from a seed, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from factory.core.blobs import BlobStore
from factory.core.demonstration import Demonstration
from factory.core.task import Candidate


class Generator(Protocol):
    """Makes candidates of one kind. The same seed gives the same digests in any process and order."""

    name: str
    version: str

    def generate(self, blobs: BlobStore, *, seed: int, start: int, count: int) -> Iterator[Candidate]:
        """Candidates number `start` to `start + count - 1` of the series of `seed` (a shard of it).

        Every blob that a candidate names is in `blobs` before it is yielded. Fewer come out where a
        number gives no candidate; numbers are independent of each other, so shards can run apart.
        """
        ...


class Demonstrator(Protocol):
    """Makes oracle demonstrations from instances that are never registered."""

    def demonstrate(self, *, seed: int, count: int) -> Iterator[tuple[str, Demonstration, tuple[str, ...]]]:
        """Instruction, reference actions, and the observations between them (one fewer than the actions)."""
        ...
