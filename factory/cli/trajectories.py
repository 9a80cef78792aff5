"""`factory trajectories`: list, show, export."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from factory.cli.console import emit_json, emit_record, emit_table, say
from factory.cli.options import (
    MOST,
    ConfigOption,
    DataOption,
    JsonOption,
    one_of,
    output_file,
    registry_of,
    settings_of,
    task_of,
)

app = typer.Typer(help="Look at rollouts.", no_args_is_help=True)

TaskFilter = Annotated[str | None, typer.Option("--task", help="Digest, prefix, name or alias of a task.")]
PurposeFilter = Annotated[str | None, typer.Option("--purpose", help="assess, train or evaluate.")]
SolvedFilter = Annotated[bool | None, typer.Option("--solved/--unsolved", help="Only those.")]
LimitFilter = Annotated[int | None, typer.Option("--limit", min=0, max=MOST, help="Most trajectories, newest first.")]


@app.command("list")
def list_trajectories(
    task: TaskFilter = None,
    purpose: PurposeFilter = None,
    solved: SolvedFilter = None,
    limit: LimitFilter = 50,
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Rollouts, newest first."""
    with registry_of(settings_of(config, data)) as registry:
        digest = None if task is None else task_of(registry, task, "--task")
        purpose = one_of(purpose, registry.purposes(), "--purpose", "a purpose of rollouts")
        rows = [asdict(row) for row in registry.trajectories(task=digest, purpose=purpose, solved=solved, limit=limit)]
    if json:
        emit_json(rows)
        return
    for row in rows:
        row["task"] = row["task"][:12]
    emit_table(rows, ("id", "task", "policy", "purpose", "outcome", "reason", "solved", "turns", "sampled"))
    say(f"{len(rows)} trajectories")


@app.command()
def show(
    number: Annotated[int, typer.Argument(metavar="ID", min=0, max=MOST, help="Number from `trajectories list`.")],
    config: ConfigOption = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """One rollout: what was asked, each action and what it showed, the verdicts, the tokens' owners."""
    from factory.core.errors import NotFound, UserError

    with registry_of(settings_of(config, data)) as registry:
        try:
            found = registry.trajectory(number)
        except NotFound:
            raise UserError("ID", number, "a number from `trajectories list`") from None
        instruction = registry.task(found.task).instruction
    record: dict[str, Any] = {
        "id": number,
        "task": found.task,
        "instruction": instruction,
        "policies": list(found.policies),
        "temperature": found.temperature,
        "seed": found.seed,
        "turns": [
            {
                "action": turn.action and turn.action.manifest(),
                "observation": turn.observation and turn.observation.text,
                "tokens": turn.end - turn.start,
                "finish": turn.finish,
            }
            for turn in found.turns
        ],
        "outcome": found.outcome.kind.value,
        "reason": found.outcome.reason.value,
        "fault": found.outcome.fault,
        "solved": found.outcome.solved,
        "checks": [asdict(check) for check in found.outcome.verdict.checks] if found.outcome.verdict else [],
        "held_out_checks": [asdict(check) for check in found.outcome.held_out.checks] if found.outcome.held_out else [],
        "components": found.components and asdict(found.components),
    }
    if json:
        tokens = found.tokens
        record["tokens"] = {
            "ids": list(tokens.ids),
            "owners": [owner.name.lower() for owner in tokens.owners],
            "logprobs": [None if logprob != logprob else logprob for logprob in tokens.logprobs],
            "versions": list(tokens.versions),
        }
        emit_json(record)
    else:
        emit_record(record)


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="Parquet file to write.")],
    task: TaskFilter = None,
    purpose: PurposeFilter = None,
    solved: SolvedFilter = None,
    limit: LimitFilter = None,
    reasoning: Annotated[
        bool,
        typer.Option("--reasoning/--no-reasoning", help="Whether loss_mask takes reasoning, as `train` does by default."),
    ] = True,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Write rollouts as one Parquet file, for pandas, Polars or datasets.

    A row is a rollout, its tokens are lists of equal length: ids, owners, logprobs, versions and loss_mask, true for the
    tokens to train on. Owners are 0 system, 1 prompt, 2 action, 3 reasoning, 4 observation, 5 injected error and
    6 template; the policy sampled 2 and 3. The file's metadata has this legend under `envfactory.owners` and the owners
    that the mask takes under `envfactory.loss_mask`.
    """
    output_file(path, "PATH")
    with registry_of(settings_of(config, data)) as registry:
        digest = None if task is None else task_of(registry, task, "--task")
        purpose = one_of(purpose, registry.purposes(), "--purpose", "a purpose of rollouts")
        rows = registry.trajectories(task=digest, purpose=purpose, solved=solved, limit=limit)
        count = registry.export_trajectories(path, list(reversed(rows)), train_reasoning=reasoning)
    say(f"{count} trajectories in {path}")
