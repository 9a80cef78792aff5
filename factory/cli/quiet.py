"""What the libraries underneath say of themselves: nothing below an error, unless the log is asked for more.

Warnings of torch, vLLM and Prefect about CUDA, memory policies or their own stores are nothing that a user can act on.
They read these variables when they are imported or started, so this is set before; one that is set already stands.
"""

from __future__ import annotations

import logging
import os

VARIABLES = {
    "TORCH_LOGS": "-torch",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
}
"""Each library's name for "errors alone"; torch's `-` is that level."""


def quiet(level: int) -> None:
    """Quieten the libraries where the log's `level` is WARNING or above; with INFO and DEBUG they say what they say."""
    if level >= logging.WARNING:
        for name, value in VARIABLES.items():
            os.environ.setdefault(name, value)
