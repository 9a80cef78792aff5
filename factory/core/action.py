"""Actions and observations: what crosses between a policy and an environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


@dataclass(frozen=True)
class Action:
    """One tool call: the tool's name and its arguments as strings."""

    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", MappingProxyType(dict(self.arguments)))

    def __reduce__(self) -> tuple[object, ...]:
        return Action, (self.tool, dict(self.arguments))

    def manifest(self) -> dict[str, object]:
        return {"tool": self.tool, "arguments": dict(self.arguments)}


class ObservationRole(StrEnum):
    """Who speaks in an observation."""

    TOOL = "tool"
    """Output of a tool: untrusted."""
    ERROR = "error"
    """Said by the harness: the action was not valid, or a limit was hit."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What one action showed. `text` is bounded, decoded safely, and untrusted."""

    text: str
    role: ObservationRole = ObservationRole.TOOL
    omitted_bytes: int = 0
    """Bytes cut from the middle of the output; the text says where."""
    exit_code: int | None = None
    timed_out: bool = False


def bounded_text(output: bytes, limit: int, dropped: int = 0) -> tuple[str, int]:
    """Decode at most `limit` bytes of `output`, head and tail kept, the cut counted and labelled.

    `dropped` counts bytes that were already cut from the middle of `output` (kept as equal halves by
    whoever read them). Returns the text and the total of omitted bytes.
    """
    if len(output) <= limit and dropped == 0:
        return output.decode("utf-8", errors="backslashreplace"), 0
    keep = min(limit, len(output))
    head, tail = output[: (keep + 1) // 2], output[len(output) - keep // 2 :]
    omitted = len(output) - keep + dropped
    text = (
        head.decode("utf-8", errors="backslashreplace")
        + f"\n[... {omitted} bytes omitted ...]\n"
        + tail.decode("utf-8", errors="backslashreplace")
    )
    return text, omitted
