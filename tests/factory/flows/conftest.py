"""Projects to make repository tasks of, and the command line."""

from tests.factory.cli.command import factory
from tests.generators.repository.conftest import checkout, fleet
from tests.generators.repository.history.conftest import history, history_fleet

__all__ = ["checkout", "factory", "fleet", "history", "history_fleet"]
