"""What a series of terminal tasks is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from factory.core.errors import UserError
from generators.signatures import SignatureSpace
from generators.terminal.composition import STYLES
from generators.terminal.skills import SKILLS


@dataclass(frozen=True, kw_only=True)
class TerminalConfig:
    """Which skills, how deep, in what words.

    `pools` decides which names are held out together: keep it for as long as a registry has sealed splits.
    """

    families: tuple[str, ...] = ("make", "write", "copy", "rename", "delete", "append", "join", "sort")
    """Skills that are composed with each other."""
    apart: tuple[str, ...] = ("store", "link")
    """Skills with names of their own, for the holdout of whole families; at most one in a task."""
    apart_percent: int = 12
    """Share of tasks that exercise a skill set apart, percent."""
    depth_weights: tuple[int, ...] = (1, 2)
    """Relative weight of tasks of 1, 2, ... skills."""
    pools: int = 8
    """Pools of names among which the signatures are spread."""
    style: str = "plain"
    """`plain` words for a tiny vocabulary, `full` sentences for larger models."""
    joined: bool = False
    """Whether the reference solution is one command line for all skills, not one call for each."""
    turns: int = 6
    """Actions in one episode."""
    command_ms: int = 5_000
    """Wall time of one command, milliseconds."""

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise UserError("terminal.style", self.style, " or ".join(STYLES))
        if self.turns < len(self.depth_weights) + 1:
            raise UserError("terminal.turns", self.turns, "room for one call per skill and the submission")
        assert self.space

    @cached_property
    def space(self) -> SignatureSpace:
        """The signatures of this configuration. Raises UserError where a field is not right."""
        return SignatureSpace(
            room="terminal",
            table=tuple(SKILLS),
            families=self.families,
            apart=self.apart,
            apart_percent=self.apart_percent,
            depth_weights=self.depth_weights,
            pools=self.pools,
        )
