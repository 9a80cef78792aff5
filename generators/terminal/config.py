"""What a series of terminal tasks is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from generators.composition import CompositionConfig, Room
from generators.terminal.skills import SKILLS


@dataclass(frozen=True, kw_only=True)
class TerminalConfig(CompositionConfig):
    """Fourteen skills in all their ordered pairs; `store` is near to a known skill, `link` is far from all.

    Many skills make many pairs, from which a policy learns to do pairs that it never saw.
    """

    room: ClassVar[Room] = Room(
        name="terminal",
        skills=SKILLS,
        tool="bash",
        argument="command",
        joint=" && ",
        closing="Change nothing else in the working directory.",
    )

    families: tuple[str, ...] = (
        "make",
        "write",
        "copy",
        "rename",
        "delete",
        "append",
        "join",
        "sort",
        "run",
        "replace",
        "count",
        "reverse",
        "match",
        "first",
    )
    apart: tuple[str, ...] = ("store", "link")
    apart_percent: int = 12
