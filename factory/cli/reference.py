"""The reference of the command line, generated from the commands: `python -m factory.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer

from factory.cli.main import app

HEAD = """\
# The command line

Generated from the commands by `python -m factory.cli.reference`. Exit codes: 0 done, 1 the work failed or what was
asked for does not hold, 2 the user's input is not right (one line on stderr), 130 interrupted. With `--json` a command
prints JSON alone on stdout; progress and messages are on stderr.
"""


def reference() -> str:
    """The whole reference as Markdown."""
    return "\n".join([HEAD, *(_section(path, command) for path, command in commands(typer.main.get_command(app), "factory"))])


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it, in the order of `--help`."""
    nested = getattr(command, "commands", None)
    if nested is None:
        yield path, command
        return
    for name, one in nested.items():
        yield from commands(one, f"{path} {name}")


def _section(path: str, command: Any) -> str:
    context = typer.Context(command)
    parameters = [one for one in command.params if one.name != "help"]
    words = [piece for one in parameters for piece in one.get_usage_pieces(context)]
    lines = [f"## `{' '.join([path, *words])}`", "", " ".join((command.help or "").split()), ""]
    for parameter in parameters:
        names, meaning = parameter.get_help_record(context)
        lines.append(f"- `{names}`: {' '.join(meaning.split())}")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
