"""`factory tasks`: list, show, why, diff, lineage, replay, withdraw, verify, gc."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factory.cli.console import emit_json, emit_record, emit_table, say
from factory.cli.options import (
    MOST,
    ConfigOption,
    DataOption,
    HeadOption,
    JsonOption,
    LineOption,
    choice,
    head_of,
    line_of,
    node_of,
    one_of,
    registry_of,
    settings_of,
    split_of,
    task_of,
)
from factory.cli.progress import shown
from registry.access import Access

if TYPE_CHECKING:
    from registry.maintenance import Verified
    from registry.store import Registry

app = typer.Typer(help="Query the registry's tasks.", no_args_is_help=True)
Reference = Annotated[str, typer.Argument(metavar="TASK", help="Digest, at least 8 digits of one, name or alias.")]


@app.command("list")
def list_tasks(
    status: Annotated[str | None, typer.Option(help="candidate, accepted, rejected, quarantined or withdrawn.")] = None,
    kind: Annotated[str | None, typer.Option(help="repository, terminal or database.")] = None,
    state: Annotated[str | None, typer.Option(help="unassessed, 'too hard', frontier or mastered.")] = None,
    part: Annotated[str | None, typer.Option(help="Part of the split: train, holdout-compositions, holdout-families.")] = None,
    split: Annotated[str | None, typer.Option(help="Which split; default: the newest.")] = None,
    family: Annotated[str | None, typer.Option(help="Skill or operator.")] = None,
    source: Annotated[str | None, typer.Option(help="Repository, or exact source.")] = None,
    line: LineOption = None,
    limit: Annotated[int | None, typer.Option(min=0, max=MOST, help="Most tasks to list.")] = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Tasks with status, state for a policy line, and part of the split."""
    from factory.core.assessment import TaskState, TaskStatus
    from factory.core.task import TaskKind

    settings = settings_of(config, data)
    with registry_of(settings) as registry:
        rows = registry.query(
            status=choice(TaskStatus, status, "--status"),
            kind=choice(TaskKind, kind, "--kind"),
            state=choice(TaskState, state, "--state"),
            line=line_of(registry, settings, line),
            split=None if split is None else split_of(registry, split, "--split"),
            part=one_of(part, registry.parts(split), "--part", "a part of the split"),
            family=one_of(family, registry.families(), "--family", "a skill or an operator of a task"),
            source=_source(registry, source),
            limit=limit,
        )
    found = [row.as_json() for row in rows]
    if json:
        emit_json(found)
        return
    for row in found:
        row["digest"] = row["digest"][:12]
        row["k/n"] = f"{row['k']}/{row['n']}" if row["n"] is not None else None
    emit_table(found, ("digest", "kind", "name", "status", "state", "k/n", "part"))
    say(f"{len(found)} tasks")


def _source(registry: Registry, source: str | None) -> str | None:
    """A source that a task has, in any spelling of a repository's name. Raises UserError."""
    if source is None or registry.has_source(source):
        return source
    return one_of(source, registry.sources(), "--source", "a repository or source of a task")


@app.command()
def show(task: Reference, config: ConfigOption = None, data: DataOption = None, json: JsonOption = False) -> None:
    """One task: instruction, environment, verifiers, reference solution, origin."""
    settings = settings_of(config, data)
    with registry_of(settings) as registry:
        from factory.core.blobs import get_json

        candidate = registry.candidate(task_of(registry, task))
        found = candidate.task
        record: dict[str, Any] = {
            "digest": found.digest,
            "name": candidate.name,
            **found.manifest(),
            "solution_actions": get_json(registry.blobs, found.solution),
            "families": list(candidate.families),
            "split_keys": list(candidate.keys.keys),
            "origin": candidate.origin.manifest(),
        }
    (emit_json if json else emit_record)(record)


@app.command()
def why(
    task: Reference, line: LineOption = None, config: ConfigOption = None, data: DataOption = None, json: JsonOption = False
) -> None:
    """Why a task has its status and its state: evidence of each filter, assessments, history."""
    settings = settings_of(config, data)
    with registry_of(settings) as registry:
        from factory.report.explain import explain

        record = explain(registry, task_of(registry, task), line=line_of(registry, settings, line))
    (emit_json if json else emit_record)(record)


@app.command()
def diff(
    first: Reference, second: Reference, config: ConfigOption = None, data: DataOption = None, json: JsonOption = False
) -> None:
    """What two tasks' manifests do not share."""
    settings = settings_of(config, data)
    with registry_of(settings) as registry:
        from factory.report.explain import differences

        record = differences(registry, task_of(registry, first, "FIRST"), task_of(registry, second, "SECOND"))
    (emit_json if json else emit_record)(record)


@app.command()
def lineage(task: Reference, config: ConfigOption = None, data: DataOption = None, json: JsonOption = False) -> None:
    """Edges up and down from a task, a policy version or any other node."""
    settings = settings_of(config, data)
    with registry_of(settings) as registry:
        from factory.report.explain import lineage_of

        record = lineage_of(registry, node_of(registry, task))
    (emit_json if json else emit_record)(record)


@app.command()
def replay(
    task: Reference,
    times: Annotated[int, typer.Option(min=1, max=MOST, help="How often the reference solution is replayed.")] = 3,
    matrix: Annotated[
        bool,
        typer.Option(
            "--matrix",
            help="Vary load, time zone, locale, hash seed and umask; report how often observations and verdicts equal the "
            "first run's, and quarantine the task where verdicts do less often than `determinism.floor` (default 0.99).",
        ),
    ] = False,
    backend: Annotated[str | None, typer.Option(help="bubblewrap or docker; default: the settings'.")] = None,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Replay the reference solution and the no-op; exit code 1 unless gold always passes and the no-op never does.

    With --matrix the reference solution only, each run in another cell; exit code 1 for a task under the floor.
    """
    from factory.flows.replay import replay_matrix, replay_task

    settings = settings_of(config, data, **({} if backend is None else {"sandbox": {"backend": backend}}))
    with registry_of(settings, Access.WRITE if matrix else Access.READ) as registry:
        digest = task_of(registry, task)
        if matrix:
            with shown() as progress:
                record = replay_matrix(settings, registry, digest, times, progress)
        else:
            record = replay_task(settings, registry, digest, times)
    (emit_json if json else emit_record)(record)
    if not record["agrees"]:
        raise typer.Exit(1)


@app.command()
def withdraw(
    task: Reference,
    reason: Annotated[str, typer.Option(help="Why; stays with the tombstone.")],
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Leave a tombstone: readable by digest, in no list, never trained on again."""
    from factory.core.errors import UserError

    if not reason.strip():
        raise UserError("--reason", reason, "why the task is withdrawn, in words")
    settings = settings_of(config, data)
    with registry_of(settings, Access.WRITE) as registry:
        digest = task_of(registry, task)
        registry.withdraw(digest, reason)
    say(f"withdrawn: {digest}")


@app.command()
def verify(head: HeadOption = None, config: ConfigOption = None, data: DataOption = None, json: JsonOption = False) -> None:
    """Hash every blob again, and compare rows, splits and triggers with the audit trail; exit code 1 when anything is wrong.

    Note the head that it prints: with --head, entries that were cut off the trail since then are seen.
    """
    noted = head_of(head)
    with registry_of(settings_of(config, data)) as registry:
        found = registry.verify(noted)
    if json:
        emit_json(asdict(found))
    else:
        say("\n".join([*found.problems, *_summary(found)]))
    if found.problems:
        raise typer.Exit(1)


@app.command()
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, remove nothing.")] = False,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Remove blobs that nothing names and that are older than a day.

    Exit code 1 when a task cannot be read: what it names is not known, and everything is kept.
    """
    settings = settings_of(config, data)
    with registry_of(settings, Access.READ if dry_run else Access.WRITE) as registry:
        found = registry.gc(dry_run=dry_run)
    if json:
        emit_json(asdict(found))
    else:
        emit_record({name: value for name, value in asdict(found).items() if name != "unreadable"})
        say("\n".join([*found.unreadable, f"{len(found.unreadable)} manifests cannot be read"]))
    if found.unreadable:
        raise typer.Exit(1)


def _summary(found: Verified) -> Iterator[str]:
    if found.adopted:
        rows = ", ".join(f"{count} {table}" for table, count in found.adopted.items())
        yield f"older than the digests on the audit trail, so not compared with what was first written: {rows}"
    yield f"audit head: {found.head}"
    counts = f"{found.tasks} tasks, {found.blobs} blobs hashed, {found.audit_entries} audit entries"
    yield f"{counts}: {len(found.problems)} problems"
