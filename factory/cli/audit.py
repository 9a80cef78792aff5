"""`factory audit`: the contamination report, and the audit trail."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from factory.cli.console import emit_json, emit_table, say
from factory.cli.options import (
    MOST,
    ConfigOption,
    DataOption,
    HeadOption,
    JsonOption,
    head_of,
    registry_of,
    settings_of,
)

app = typer.Typer(help="Audit contamination and the trail of acts.", no_args_is_help=True)


@app.command()
def contamination(config: ConfigOption = None, data: DataOption = None, json: JsonOption = False) -> None:
    """Compare all that every task says and ships with the reference sets, with planted items to prove that matches are found.

    Exit code 1 when a task matches, could not be screened, or too many are too short for it, or when the screen did not
    find enough of what was planted: then its silence certifies nothing.
    """
    from factory.flows.auditing import audit_contamination
    from factory.flows.sections import check_sections
    from factory.report.contamination import certificate

    settings = settings_of(config, data)
    check_sections(settings)
    with registry_of(settings) as registry:
        record = audit_contamination(settings, registry)
    if json:
        emit_json(record)
    else:
        for title, rows in certificate(record).items():
            typer.echo(f"{title}:")
            emit_table(rows, rows[0])
            typer.echo("")
    if not record["certified"]:
        raise typer.Exit(1)


@app.command()
def show(
    subject: Annotated[str | None, typer.Option(help="Digest or name that was acted on.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Most entries, newest first.")] = 50,
    head: HeadOption = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """The hash-chained trail of acts on the registry; exit code 1 when it is broken, or a noted head is not on it."""
    from factory.core.errors import RegistryError, UserError

    noted = head_of(head)
    with registry_of(settings_of(config, data)) as registry:
        rows = [asdict(entry) for entry in registry.audit_log(subject=subject, limit=limit)]
        if subject is not None and not rows:
            raise UserError("--subject", subject, "a digest or name in full that an entry of the trail has")
        newest = registry.audit_head()
        try:
            verdict = f"chain whole: {registry.verify_audit(noted)} entries"
            broken = False
        except RegistryError as error:
            verdict, broken = str(error), True
    if json:
        emit_json({"entries": rows, "head": newest, "chain": verdict, "broken": broken})
    else:
        emit_table(rows, ("seq", "created_at", "action", "subject"))
        say(f"audit head: {newest}\n{verdict}")
    if broken:
        raise typer.Exit(1)
