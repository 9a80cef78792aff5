"""The tables of the settings whose configuration lives in a room, and their check before any work begins."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from factory.settings import Settings, section

ROOMS = {
    "terminal": "generators.terminal.config:TerminalConfig",
    "database": "generators.database.config:DatabaseConfig",
    "repository": "generators.repository.config:RepositoryConfig",
    "endpoint": "factory.agent.endpoint:EndpointConfig",
    "screen": "filters.contamination.screen:ContaminationConfig",
    "determinism": "filters.determinism:DeterminismConfig",
    "warmstart": "trainer.warmstart.config:WarmStartConfig",
    "train": "trainer.grpo:GrpoConfig",
}
"""Table and the class that it becomes, cheap imports first: the last two bring torch."""


def room_config(name: str) -> type[Any]:
    """The class of a room's table."""
    module, _, attribute = ROOMS[name].partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found


def check_sections(settings: Settings) -> None:
    """Read every table that was given, also those that the command does not use. Raises UserError that names the field.

    How long to train is asked by `factory train` alone: a night may run on settings that do not say it.
    """
    for name in ROOMS:
        table = dict(getattr(settings, name))
        if name == "screen":
            table.pop("references", None)
        if table:
            section(room_config(name), {"steps": 1, **table} if name == "train" else table, name)


def check_settings(settings: Settings) -> None:
    """`check_sections`, and that the evaluations which a night compares with can be read. Raises UserError."""
    from factory.flows.screening import references

    check_sections(settings)
    references(settings.screen)
