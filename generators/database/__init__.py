"""Tasks on SQLite databases with generated data, composed of skills."""

from generators.composition import SkillDemonstrator
from generators.database.config import DatabaseConfig
from generators.database.generator import DatabaseGenerator


class DatabaseDemonstrator(SkillDemonstrator):
    """Demonstrations of database tasks for the warm start."""

    def __init__(self, config: DatabaseConfig | None = None, *, withheld: frozenset[str] = frozenset()) -> None:
        super().__init__(config or DatabaseConfig(), withheld=withheld)


__all__ = ["DatabaseConfig", "DatabaseDemonstrator", "DatabaseGenerator"]
