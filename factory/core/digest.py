"""Canonical bytes and digests: the identity of everything that is stored.

A canonical value is JSON with sorted keys, UTF-8 in Unicode form NFC, LF line ends, integers but no
floats. The same value gives the same bytes in any process, order, locale or machine. Content of
files is never normalised: it is hashed as the bytes it is.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from typing import TypeAlias

Json: TypeAlias = "bool | int | str | list[Json] | tuple[Json, ...] | dict[str, Json] | Mapping[str, Json] | None"
Digest: TypeAlias = str
"""SHA-256 as 64 lower-case hexadecimal digits."""


def canonical_text(text: str) -> str:
    """Unicode NFC with LF line ends."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def canonical_bytes(value: Json) -> bytes:
    """Serialise `value` canonically.

    Raises TypeError for floats, bytes, non-string keys and other types outside canonical JSON, and
    ValueError when two keys of one object have the same canonical form.
    """
    return json.dumps(_canonical(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _canonical(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return canonical_text(str(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Mapping):
        result: dict[str, object] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"key {key!r} is not a string")
            name = canonical_text(key)
            if name in result:
                raise ValueError(f"two keys have the canonical form {name!r}")
            result[name] = _canonical(item)
        return result
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no canonical form: {value!r}")


def digest_of(value: Json) -> Digest:
    """SHA-256 of the canonical bytes of `value`."""
    return digest_bytes(canonical_bytes(value))


def digest_bytes(data: bytes) -> Digest:
    """SHA-256 of raw bytes."""
    return hashlib.sha256(data).hexdigest()


def is_digest(text: str) -> bool:
    """Whether `text` has the form of a digest."""
    return len(text) == 64 and all(character in "0123456789abcdef" for character in text)
