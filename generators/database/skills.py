"""The table of skills. Its order is fixed: it gives each family its reserve of names."""

from __future__ import annotations

from generators.database.changes import Column, Drop, Insert, Remove, Retitle, Update
from generators.database.model import Table, View
from generators.database.views import Pairs, Pick, Ranked, Tally, Total
from generators.names import RESERVES
from generators.skill import Skill

SKILLS: dict[str, Skill[Table | View]] = {
    skill.name: skill
    for skill in (
        Update(),
        Remove(),
        Insert(),
        Column(),
        Pick(),
        Total(),
        Pairs(),
        Tally(),
        Drop(),
        Retitle(),
        Ranked(),
    )
}
assert len(SKILLS) <= RESERVES
