"""What the C library should do with memory while a small model trains."""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Parameters of mallopt(3)."""
KEPT_BYTES = 1 << 30


def keep_freed_memory() -> bool:
    """Let glibc keep freed memory and serve large blocks from it, not from fresh pages of the kernel each time.

    A training step of a small model allocates and frees the same few megabytes hundreds of times: with
    glibc's own thresholds half of the system time went there. True where the C library took it.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_MMAP_THRESHOLD, KEPT_BYTES), (M_TRIM_THRESHOLD, KEPT_BYTES), (M_TOP_PAD, 64 << 20))
    return all(mallopt(name, value) == 1 for name, value in settings)
