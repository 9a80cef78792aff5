"""`factory split` and `factory alias`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from factory.cli.console import emit_json, emit_record, emit_table, say
from factory.cli.options import ConfigOption, DataOption, JsonOption, node_of, one_of, registry_of, settings_of, split_of
from registry.access import Access

app = typer.Typer(help="Sealed splits.", no_args_is_help=True)
aliases = typer.Typer(help="Names that move, by compare-and-set.", no_args_is_help=True)


@app.command()
def show(config: ConfigOption = None, data: DataOption = None, json: JsonOption = False) -> None:
    """Every sealed split with the size of its parts."""
    with registry_of(settings_of(config, data)) as registry:
        found = [asdict(split) for split in registry.splits()]
    if json:
        emit_json(found)
        return
    for split in found:
        emit_record(split)


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="Split; default: all.")] = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Look at every key of every task anew, and compare with what was sealed; exit code 1 for a leak or a change."""
    with registry_of(settings_of(config, data)) as registry:
        names = [split.name for split in registry.splits()] if name is None else [split_of(registry, name, "NAME")]
        problems = {one: registry.check_split(one) for one in names}
    if json:
        emit_json(problems)
    else:
        for one, found in problems.items():
            say("\n".join([*found, f"{one}: {len(found)} problems"]))
    if any(problems.values()):
        raise typer.Exit(1)


@aliases.command("set")
def set_alias(
    name: Annotated[str, typer.Argument(help="The alias.")],
    target: Annotated[str, typer.Argument(help="Task or policy version to point at.")],
    expected: Annotated[
        str | None, typer.Option(help="Task or policy version that it must point at now; none: that it is new.")
    ] = None,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Point an alias at a task or a policy version; refused unless it points where you expect."""
    with registry_of(settings_of(config, data), Access.WRITE) as registry:
        digest = node_of(registry, target, "TARGET")
        held = None if expected is None else node_of(registry, expected, "--expected")
        registry.alias_set(name, digest, expected=held)
    say(f"{name} -> {digest}")


@aliases.command("log")
def alias_log(
    name: Annotated[str | None, typer.Argument(help="Alias; default: all.")] = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Every move of an alias."""
    with registry_of(settings_of(config, data)) as registry:
        one_of(name, (move.name for move in registry.alias_log()), "NAME", "an alias")
        rows = [asdict(move) for move in registry.alias_log(name)]
    if json:
        emit_json(rows)
    else:
        emit_table(rows, ("created_at", "name", "old", "new"))
