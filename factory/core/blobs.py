"""The blob protocol: content-addressed bytes. The registry implements it on disk."""

from __future__ import annotations

import json
from typing import Any, Protocol, runtime_checkable

from factory.core.digest import Digest, Json, canonical_bytes, digest_bytes
from factory.core.errors import NotFound


@runtime_checkable
class BlobStore(Protocol):
    """Bytes by their SHA-256. Safe for several threads and processes at once."""

    def put(self, data: bytes) -> Digest:
        """Store `data` (a no-op when known) and return its digest."""
        ...

    def get(self, digest: Digest) -> bytes:
        """The bytes of `digest`. Raises NotFound when absent, RegistryError when they do not match."""
        ...

    def has(self, digest: Digest) -> bool:
        """Whether `digest` is stored."""
        ...


def put_json(blobs: BlobStore, value: Json) -> Digest:
    """Store the canonical bytes of `value`; the blob's digest equals `digest_of(value)`."""
    return blobs.put(canonical_bytes(value))


def get_json(blobs: BlobStore, digest: Digest) -> Any:
    """Read a value stored with `put_json`."""
    return json.loads(blobs.get(digest))


class MemoryBlobs:
    """Blobs in memory, for one process: tests and short computations."""

    def __init__(self) -> None:
        self._data: dict[Digest, bytes] = {}

    def put(self, data: bytes) -> Digest:
        digest = digest_bytes(data)
        self._data[digest] = bytes(data)
        return digest

    def get(self, digest: Digest) -> bytes:
        try:
            return self._data[digest]
        except KeyError:
            raise NotFound(f"no blob {digest}") from None

    def has(self, digest: Digest) -> bool:
        return digest in self._data
