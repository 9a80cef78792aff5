"""What a series of database tasks is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from factory.core.errors import UserError
from generators.composition import CompositionConfig, Room
from generators.database.skills import SKILLS


@dataclass(frozen=True, kw_only=True)
class DatabaseConfig(CompositionConfig):
    """Nine skills, singly and in pairs; `tally` is near to a known skill, `drop` is far from all."""

    room: ClassVar[Room] = Room(
        name="database",
        skills=SKILLS,
        tool="sql",
        argument="query",
        joint="; ",
        closing="Change nothing else in the database.",
    )

    families: tuple[str, ...] = ("update", "remove", "insert", "column", "pick", "total", "pairs", "retitle", "ranked")
    apart: tuple[str, ...] = ("tally", "drop")
    apart_percent: int = 12
    depth_weights: tuple[int, ...] = (2, 1)
    others: int = 2
    """Further databases of the same tables on which each of the two verifiers evaluates the views."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.others <= 8:
            raise UserError("database.others", self.others, "1 to 8 databases")
