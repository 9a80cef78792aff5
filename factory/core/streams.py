"""Named random streams: one per purpose, so that no consumer shifts another's draws."""

from __future__ import annotations

import hashlib
import random


def stream_seed(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose of one run; different purposes give independent seeds."""
    text = "\x1f".join([str(int(seed)), *(f"{type(part).__name__[0]}{part}" for part in purpose)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(seed: int, *purpose: str | int) -> random.Random:
    """A generator of its own for one purpose of one run."""
    return random.Random(stream_seed(seed, *purpose))
