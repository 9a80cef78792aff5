"""Commands that do long work: nightly, serve, generate, assess, warmstart, train, evaluate."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factory.cli.console import emit_json, emit_record, emit_table, say
from factory.cli.options import MOST, ConfigOption, DataOption, JsonOption, require_registry, settings_of
from factory.cli.progress import shown
from factory.core.errors import UserError

if TYPE_CHECKING:
    from factory.settings import Settings

NameOption = Annotated[str, typer.Option("--name", help="Name of the run; the same name again resumes it.")]
PolicyOption = Annotated[str | None, typer.Option("--policy", help="Policy version; default: the line's latest.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top level."""
    for command in (nightly, serve, generate, assess, warmstart, train, evaluate):
        app.command()(command)


def nightly(
    day: Annotated[str | None, typer.Option("--date", help="Date of the run, YYYY-MM-DD; default: today (UTC).")] = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Run the whole nightly flow now; the same date again resumes it."""
    settings = settings_of(config, data)
    when = _date_of(day)
    from factory.flows.night import Night
    from factory.flows.prefect_home import settle
    from factory.flows.sections import check_settings

    check_settings(settings)
    Night.claim(settings, when)
    settle((settings.data / "prefect").resolve())
    from factory.flows.nightly import nightly as flow

    with shown() as progress:
        summary = flow(settings=settings, day=when.isoformat(), progress=progress)
    (emit_json if json else emit_record)(summary)


def serve(config: ConfigOption = None, data: DataOption = None) -> None:
    """Serve the nightly flow on its schedule until interrupted."""
    settings = settings_of(config, data)
    from factory.flows.prefect_home import scheduling_server, settle
    from factory.flows.sections import check_settings

    check_settings(settings)
    settle((settings.data / "prefect").resolve())
    with scheduling_server():
        from factory.flows.serve import serve as serve_flow

        say(f"serving nightly at {settings.nightly.cron} ({settings.nightly.timezone}); stop with Ctrl-C")
        serve_flow(settings, config)


def generate(
    kind: Annotated[str, typer.Argument(help="repository, terminal or database.")],
    count: Annotated[int, typer.Option(min=1, max=MOST, help="How many of the series; with --fleet of each project's.")] = 10,
    start: Annotated[int, typer.Option(min=0, max=MOST, help="Number of the first.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the series.")] = 0,
    fleet: Annotated[
        Path | None,
        typer.Option("--fleet", help="Fleet file, or wide or default: every project of it by itself, with its yield."),
    ] = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Make and register candidates of one kind, with validity and loophole evidence.

    With --fleet the repositories of a fleet, each by itself: what each gives and what became of the rest, by project and by
    operator. The same arguments again resume a run that was killed.
    """
    from factory.cli.options import one_of
    from factory.core.task import TaskKind
    from factory.settings import GenerateSettings

    made = GenerateSettings.model_fields.keys() & {one.value for one in TaskKind}
    one_of(kind, made, "KIND", "a kind that is made")
    if fleet is not None and TaskKind(kind) is not TaskKind.REPOSITORY:
        raise UserError("--fleet", str(fleet), "KIND repository with it")
    settings = _checked(config, data)
    if fleet is not None:
        _generate_fleet(settings, fleet, seed=seed, start=start, count=count, json=json)
        return
    from factory.flows.commands import generate as work

    with shown() as progress:
        _emit(work(settings, TaskKind(kind), seed=seed, start=start, count=count, progress=progress), json)


def _generate_fleet(settings: Settings, fleet: Path, *, seed: int, start: int, count: int, json: bool) -> None:
    from factory.flows.fleet import generate_fleet

    with shown() as progress:
        found = generate_fleet(settings, fleet, seed=seed, start=start, count=count, progress=progress)
    (emit_json if json else _emit_yields)(found)


def _emit_yields(found: dict[str, Any]) -> None:
    """A table of projects, one of operators, and why projects were refused."""
    total, fates = found["all"], list(found["all"]["fates"])
    for kind, more in (("project", ("tests", "seconds")), ("operator", ())):
        rows = [{**one, **one["fates"]} for one in (*found[f"{kind}s"], {kind: "all", **total})]
        emit_table(rows, (kind, *more, "edits", "valid", "yield", *fates))
        typer.echo("")
    for one in found["projects"]:
        if one.get("refused"):
            typer.echo(f"{one['project']}: {one['refused']}")
    typer.echo(f"run: {found['run']}")


def assess(
    policy: PolicyOption = None,
    limit: Annotated[int | None, typer.Option(min=1, max=MOST, help="Most tasks.")] = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Place tasks for the policy line: k of n rollouts of each that has no assessment of this version."""
    settings = _checked(config, data)
    require_registry(settings)
    from factory.flows.commands import assess as work

    with shown() as progress:
        _emit(work(settings, policy, limit=limit, progress=progress), json)


def warmstart(config: ConfigOption = None, data: DataOption = None, json: JsonOption = False) -> None:
    """Give the policy line its first version, warm started on demonstrations."""
    settings = _checked(config, data)
    from factory.flows.commands import warmstart as work

    with shown() as progress:
        _emit(work(settings, progress=progress), json)


def train(
    name: NameOption = "first",
    policy: PolicyOption = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Train on the frontier, with the sealed holdout evaluated before and after."""
    settings = _checked(config, data)
    from factory.flows.commands import train as work

    with shown() as progress:
        summary = work(settings, name=name, policy=policy, progress=progress)
    _emit(summary, json)


def evaluate(
    name: NameOption = "",
    policy: PolicyOption = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Evaluate a policy version on the sealed holdout."""
    settings = _checked(config, data)
    require_registry(settings)
    from factory.flows.commands import evaluate as work

    chosen = name or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    _emit(work(settings, name=chosen, policy=policy), json)


def _checked(config: Path | None, data: Path | None) -> Settings:
    """The settings, every table of them looked at: a mistake is told before anything heavy is imported or begun."""
    settings = settings_of(config, data)
    from factory.flows.sections import check_sections

    check_sections(settings)
    return settings


def _emit(record: dict[str, Any], json: bool) -> None:
    (emit_json if json else emit_record)(record)


def _date_of(day: str | None) -> date:
    """The date that was typed, today (UTC) when none was. Raises UserError."""
    try:
        return datetime.now(UTC).date() if day is None else date.fromisoformat(day)
    except ValueError:
        raise UserError("--date", day, "a date as YYYY-MM-DD") from None
