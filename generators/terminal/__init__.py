"""Tasks over generated file trees, composed of skills."""

from generators.terminal.config import TerminalConfig
from generators.terminal.demonstrations import TerminalDemonstrator

__all__ = ["TerminalConfig", "TerminalDemonstrator"]
