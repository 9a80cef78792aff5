"""What commands print: tables for people, JSON alone for programs, progress on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

SHOWN = 8
"""Most items of a list that people are shown; programs get them all."""


def emit_json(value: Any) -> None:
    """Print `value` as JSON, and nothing else, on stdout."""
    typer.echo(json.dumps(value, indent=2, sort_keys=False, ensure_ascii=False, default=str))


def emit_table(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> None:
    """Print rows under a header, columns aligned; plain text, so that `grep` and `cut` work."""
    names = list(columns)
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(names))]
    for line in cells:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def emit_record(record: Mapping[str, Any], indent: str = "") -> None:
    """Print one record, a field a line, nested ones indented."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            typer.echo(f"{indent}{name}:")
            emit_record(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            typer.echo(f"{indent}{name}:")
            for item in value:
                emit_record(item, indent + "  ")
                typer.echo("")
        else:
            typer.echo(f"{indent}{name}: {_cell(value)}")


def say(line: str) -> None:
    """One plain line on stderr."""
    typer.echo(line, err=True)


def on_terminal() -> bool:
    """Whether a person watches stderr."""
    return sys.stderr.isatty()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list | tuple):
        text = " ".join(str(item) for item in value[:SHOWN]) or "-"
        return text if len(value) <= SHOWN else f"{text} ... ({len(value)} in all)"
    return str(value)
