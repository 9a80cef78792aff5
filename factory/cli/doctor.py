"""`factory doctor`: what of this machine is usable, and what to do about what is not."""

from __future__ import annotations

from typing import Any

import typer

from factory.cli.console import emit_json, emit_table
from factory.cli.options import ConfigOption, DataOption, JsonOption, settings_of


def add_to(app: typer.Typer) -> None:
    """Add the command to the top level."""
    app.command()(doctor)


def doctor(config: ConfigOption = None, data: DataOption = None, json: JsonOption = False) -> None:
    """Say what of this machine is usable; exit code 1 when the settings cannot work here."""
    settings = settings_of(config, data)
    from factory.report.machine import examine

    found = examine(settings)
    if json:
        emit_json(found)
    else:
        rows: list[dict[str, Any]] = [{**one, "holds": "yes" if one["holds"] else "NO"} for one in found]
        emit_table(rows, ("part", "name", "holds", "detail"))
    if any(one["needed"] and not one["holds"] for one in found):
        raise typer.Exit(1)
