"""The table of skills. Its order is fixed: it gives each family its reserve of names."""

from __future__ import annotations

from generators.names import RESERVES
from generators.skill import Skill
from generators.terminal.objects import Copy, Delete, Link, Make, Rename, Run, Store, Write
from generators.terminal.state import Node
from generators.terminal.texts import Append, Count, First, Join, Match, Replace, Reverse, Sort

SKILLS: dict[str, Skill[Node]] = {
    skill.name: skill
    for skill in (
        Make(),
        Write(),
        Copy(),
        Rename(),
        Delete(),
        Append(),
        Join(),
        Sort(),
        Run(),
        Link(),
        Store(),
        Replace(),
        Count(),
        Reverse(),
        Match(),
        First(),
    )
}
assert len(SKILLS) <= RESERVES
