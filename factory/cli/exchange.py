"""`factory tasks import` and `factory tasks export`: files of tasks, in this project's format and in others'."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from factory.cli.console import emit_json, emit_record
from factory.cli.options import (
    MOST,
    ConfigOption,
    DataOption,
    JsonOption,
    choice,
    one_of,
    output_file,
    registry_of,
    settings_of,
    task_of,
)
from factory.cli.progress import shown

FORMATS = ("envfactory", "swesmith", "swebench")
SUFFIXES = {"envfactory": (".jsonl", ".jsonl.gz")}
FormatOption = Annotated[str, typer.Option("--format", help="envfactory, swesmith or swebench.")]


def add_to(app: typer.Typer) -> None:
    """Add both commands to `factory tasks`."""
    app.command("import")(import_)
    app.command()(export)


def import_(
    file: Annotated[Path, typer.Argument(help="Tasks: .jsonl, .jsonl.gz, and of rows .parquet too.")],
    form: FormatOption = "envfactory",
    source: Annotated[
        str,
        typer.Option(
            help="Where rows' files are: git repository, folder, or archive of a source distribution; default: the fleet."
        ),
    ] = "",
    revision: Annotated[str, typer.Option(help="Revision of a git repository; default: what a row says, else HEAD.")] = "",
    project: Annotated[
        str, typer.Option(help="Project of the fleet whose layout the files have; default: by name, then looks.")
    ] = "",
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Register the tasks of a file as candidates and check them; rows that cannot be tasks are listed with the reason.

    Rows of others become tasks with their repository's files at hand; tests count where the row and runs here agree. Exit
    code 1 when no row became a task.
    """
    _known(form)
    settings = settings_of(config, data)
    from factory.flows.exchange import import_ as work
    from factory.flows.sections import check_sections
    from generators.repository.exchange.checkouts import Place

    check_sections(settings)
    with shown() as progress:
        place = Place(source=source, revision=revision, project=project)
        record = work(settings, file, form, place, progress=progress)
    (emit_json if json else emit_record)(record)
    if not record["tasks"]:
        raise typer.Exit(1)


def export(
    file: Annotated[Path, typer.Argument(help="File to write: .jsonl, .jsonl.gz, and of rows .parquet too.")],
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK]...", help="Tasks; default: all that the options leave.")
    ] = None,
    form: FormatOption = "envfactory",
    status: Annotated[str | None, typer.Option(help="candidate, accepted, rejected, quarantined or withdrawn.")] = None,
    family: Annotated[str | None, typer.Option(help="Skill or operator.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, max=MOST, help="Most tasks to write.")] = None,
    blobs: Annotated[
        bool, typer.Option("--blobs/--no-blobs", help="Rows: carry what another registry needs to have the tasks.")
    ] = True,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Write tasks to a file, with the held-out tests: what reads it must not train on those. Rows are of repository tasks."""
    from factory.core.assessment import TaskStatus
    from factory.core.task import TaskKind

    _known(form)
    output_file(file, "FILE")
    _check_name(file, form)
    settings = settings_of(config, data)
    with registry_of(settings) as registry:
        if tasks:
            digests = [task_of(registry, reference) for reference in tasks]
        else:
            rows = registry.query(
                status=choice(TaskStatus, status, "--status"),
                kind=None if form == "envfactory" else TaskKind.REPOSITORY,
                family=one_of(family, registry.families(), "--family", "a skill or an operator of a task"),
                limit=limit,
            )
            digests = [row.digest for row in rows]
        from factory.flows.exchange import export as work

        with shown() as progress:
            record: dict[str, Any] = work(settings, registry, digests, file, form, blobs=blobs, progress=progress)
    (emit_json if json else emit_record)(record)


def _known(form: str) -> None:
    one_of(form, FORMATS, "--format", "a format of tasks")


def _check_name(file: Path, form: str) -> None:
    """Raise UserError unless the file's name says how it is written."""
    from factory.core.errors import UserError
    from registry.exchange.rows import file_suffix

    suffix = file_suffix(file)
    allowed = SUFFIXES.get(form, (suffix,))
    if suffix not in allowed:
        raise UserError("FILE", str(file), f"a name that ends in {' or '.join(allowed)} for this format")
