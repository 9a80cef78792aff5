"""Tasks over generated file trees, composed of skills."""

from generators.composition import SkillDemonstrator
from generators.terminal.config import TerminalConfig
from generators.terminal.generator import TerminalGenerator


class TerminalDemonstrator(SkillDemonstrator):
    """Demonstrations of terminal tasks for the warm start."""

    def __init__(self, config: TerminalConfig | None = None, *, withheld: frozenset[str] = frozenset()) -> None:
        super().__init__(config or TerminalConfig(), withheld=withheld)


__all__ = ["TerminalConfig", "TerminalDemonstrator", "TerminalGenerator"]
