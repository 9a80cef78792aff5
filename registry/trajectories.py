"""Trajectories as Parquet: the schema, and the way there and back without loss.

One row is one trajectory. Token columns are lists of equal length:

    ids       list<int32>    token ids, in and out, as sampled and as given
    owners    list<int8>     `factory.core.trajectory.Owner`: 0 system, 1 prompt, 2 action, 3 reasoning,
                             4 observation, 5 injected error, 6 template
    logprobs  list<double>   behaviour log-probability of sampled tokens, nats; NaN elsewhere
    versions  list<int16>    index into `policies` for sampled tokens; -1 elsewhere

The tokens to train on are those whose owner is 2, and 3 where reasoning is trained: an exported file has them as
the column `loss_mask` (list<bool>) too, and in its metadata `envfactory.owners` = the owners' names by code, JSON,
and `envfactory.loss_mask` = the owners that the mask takes, JSON. `turns`, `verdict`
and `held_out` are nested; mappings are lists of (name, value). Times are seconds. Readable by pandas,
Polars and `datasets`. The file's metadata holds `envfactory.trajectories` = the version of this schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factory.core.action import Action, Observation, ObservationRole
from factory.core.errors import RegistryError
from factory.core.outcome import Check, CheckState, Outcome, OutcomeKind, ResourceUse, Termination, Verdict
from factory.core.reward import RewardComponents
from factory.core.trajectory import SAMPLED, Owner, Tokens, Trajectory, Turn

VERSION = b"1"
_VERSION_KEY = b"envfactory.trajectories"
_USE = "use"
"""Name in `extra` of what the episode's sandbox used, as JSON; absent where nothing is known of it."""


def _struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


_PAIRS = pa.list_(_struct(name=pa.string(), value=pa.string()))
_VERDICT = _struct(
    checks=pa.list_(_struct(name=pa.string(), state=pa.string(), detail=pa.string())),
    verifier=pa.string(),
    start=pa.string(),
    end=pa.string(),
    wall_s=pa.float64(),
    cpu_s=pa.float64(),
)
_TURN = _struct(
    start=pa.int32(),
    end=pa.int32(),
    action=_struct(tool=pa.string(), arguments=_PAIRS),
    observation=_struct(
        text=pa.string(), role=pa.string(), omitted_bytes=pa.int64(), exit_code=pa.int32(), timed_out=pa.bool_()
    ),
    finish=pa.string(),
    decode_s=pa.float64(),
    environment_s=pa.float64(),
    observe_s=pa.float64(),
)
_COMPONENTS = _struct(
    outcome=pa.float64(),
    progress=pa.float64(),
    validity=pa.float64(),
    tokens=pa.int64(),
    calls=pa.int64(),
    seconds=pa.float64(),
    forbidden=pa.int64(),
)
SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("group", pa.string()),
        ("member", pa.int32()),
        ("policies", pa.list_(pa.string())),
        ("purpose", pa.string()),
        ("run", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("solved", pa.bool_()),
        ("ids", pa.list_(pa.int32())),
        ("owners", pa.list_(pa.int8())),
        ("logprobs", pa.list_(pa.float64())),
        ("versions", pa.list_(pa.int16())),
        ("turns", pa.list_(_TURN)),
        ("components", _COMPONENTS),
        ("verdict", _VERDICT),
        ("held_out", _VERDICT),
        ("fault", pa.string()),
        ("seed", pa.int64()),
        ("temperature", pa.float64()),
        ("backend", pa.string()),
        ("image", pa.string()),
        ("environment", pa.string()),
        ("reset_s", pa.float64()),
        ("queue_s", pa.float64()),
        ("verify_s", pa.float64()),
        ("extra", _PAIRS),
    ],
    metadata={_VERSION_KEY: VERSION},
)


def to_table(trajectories: Iterable[Trajectory], *, purpose: str, run: str | None) -> pa.Table:
    """A table of `SCHEMA`. Raises RegistryError for a value outside it (an id over 32 bits, a lone surrogate)."""
    rows = [_record(trajectory, purpose, run) for trajectory in trajectories]
    try:
        return pa.Table.from_pylist(rows, schema=SCHEMA)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise RegistryError(f"a trajectory does not fit the Parquet schema: {error}") from error


def export_schema(train_reasoning: bool) -> pa.Schema:
    """The schema of an exported file: `SCHEMA` with the mask, and the legend of both in the metadata."""
    legend = {
        _VERSION_KEY: VERSION,
        b"envfactory.owners": json.dumps({int(owner): owner.name.lower() for owner in Owner}).encode(),
        b"envfactory.loss_mask": json.dumps([owner.name.lower() for owner in sorted(_trained(train_reasoning))]).encode(),
    }
    return SCHEMA.append(pa.field("loss_mask", pa.list_(pa.bool_()))).with_metadata(legend)


def with_mask(table: pa.Table, train_reasoning: bool) -> pa.Table:
    """A table of `SCHEMA` as one of `export_schema`: true where a token is trained on."""
    owners = table["owners"].combine_chunks()
    trained = pa.array([int(owner) for owner in _trained(train_reasoning)], pa.int8())
    mask = pa.ListArray.from_arrays(_offsets(owners), pc.is_in(owners.flatten(), value_set=trained))
    columns = [*table.columns, mask]
    return pa.Table.from_arrays(columns, schema=export_schema(train_reasoning))


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Where each list begins in `lists.flatten()`: those of a slice do not begin at 0."""
    return pa.array(accumulate(pc.list_value_length(lists).to_pylist(), initial=0), pa.int32())


def _trained(train_reasoning: bool) -> frozenset[Owner]:
    return SAMPLED if train_reasoning else SAMPLED - {Owner.REASONING}


def to_parquet(table: pa.Table) -> bytes:
    """Parquet bytes: equal tables give equal bytes for one version of pyarrow."""
    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def from_parquet(data: bytes) -> pa.Table:
    """Read a table back. Raises RegistryError when its schema has another version."""
    table = pq.read_table(pa.BufferReader(data))
    found = (table.schema.metadata or {}).get(_VERSION_KEY)
    if found != VERSION:
        raise RegistryError(f"trajectories of schema {found!r}; this envfactory reads {VERSION!r}")
    return table


def from_table(table: pa.Table) -> list[Trajectory]:
    """The trajectories of a table, in order."""
    return [_trajectory(row) for row in table.to_pylist()]


def _record(trajectory: Trajectory, purpose: str, run: str | None) -> dict[str, Any]:
    outcome, tokens = trajectory.outcome, trajectory.tokens
    return {
        "task": trajectory.task,
        "group": trajectory.group,
        "member": trajectory.member,
        "policies": list(trajectory.policies),
        "purpose": purpose,
        "run": run,
        "outcome": outcome.kind.value,
        "reason": outcome.reason.value,
        "solved": outcome.solved,
        "ids": list(tokens.ids),
        "owners": [int(owner) for owner in tokens.owners],
        "logprobs": list(tokens.logprobs),
        "versions": list(tokens.versions),
        "turns": [_turn_record(turn) for turn in trajectory.turns],
        "components": trajectory.components and vars(trajectory.components),
        "verdict": outcome.verdict and _verdict_record(outcome.verdict),
        "held_out": outcome.held_out and _verdict_record(outcome.held_out),
        "fault": outcome.fault,
        "seed": trajectory.seed,
        "temperature": trajectory.temperature,
        "backend": trajectory.backend,
        "image": trajectory.image,
        "environment": trajectory.environment,
        "reset_s": trajectory.reset_s,
        "queue_s": trajectory.queue_s,
        "verify_s": outcome.verify_s,
        "extra": _pairs(trajectory.extra | ({_USE: json.dumps(vars(outcome.use))} if outcome.use else {})),
    }


def _turn_record(turn: Turn) -> dict[str, Any]:
    action, observation = turn.action, turn.observation
    return {
        "start": turn.start,
        "end": turn.end,
        "action": action and {"tool": action.tool, "arguments": _pairs(action.arguments)},
        "observation": observation and {**vars(observation), "role": observation.role.value},
        "finish": turn.finish,
        "decode_s": turn.decode_s,
        "environment_s": turn.environment_s,
        "observe_s": turn.observe_s,
    }


def _verdict_record(verdict: Verdict) -> dict[str, Any]:
    checks = [{"name": check.name, "state": check.state.value, "detail": check.detail} for check in verdict.checks]
    return {**vars(verdict), "checks": checks}


def _trajectory(row: Mapping[str, Any]) -> Trajectory:
    components, extra = row["components"], _mapping(row["extra"])
    use = extra.pop(_USE, None)
    return Trajectory(
        task=row["task"],
        group=row["group"],
        member=row["member"],
        policies=tuple(row["policies"]),
        tokens=Tokens(
            ids=tuple(row["ids"]),
            owners=tuple(Owner(owner) for owner in row["owners"]),
            logprobs=tuple(row["logprobs"]),
            versions=tuple(row["versions"]),
        ),
        turns=tuple(_turn(turn) for turn in row["turns"]),
        outcome=Outcome(
            kind=OutcomeKind(row["outcome"]),
            reason=Termination(row["reason"]),
            verdict=_verdict(row["verdict"]),
            held_out=_verdict(row["held_out"]),
            fault=row["fault"],
            verify_s=row["verify_s"],
            use=None if use is None else ResourceUse(**json.loads(use)),
        ),
        components=None if components is None else RewardComponents(**components),
        seed=row["seed"],
        temperature=row["temperature"],
        backend=row["backend"],
        image=row["image"],
        environment=row["environment"],
        reset_s=row["reset_s"],
        queue_s=row["queue_s"],
        extra=extra,
    )


def _turn(row: Mapping[str, Any]) -> Turn:
    action, observation = row["action"], row["observation"]
    return Turn(
        start=row["start"],
        end=row["end"],
        action=None if action is None else Action(action["tool"], _mapping(action["arguments"])),
        observation=None
        if observation is None
        else Observation(**{**observation, "role": ObservationRole(observation["role"])}),
        finish=row["finish"],
        decode_s=row["decode_s"],
        environment_s=row["environment_s"],
        observe_s=row["observe_s"],
    )


def _verdict(row: Mapping[str, Any] | None) -> Verdict | None:
    if row is None:
        return None
    checks = tuple(Check(check["name"], CheckState(check["state"]), check["detail"]) for check in row["checks"])
    return Verdict(**{**row, "checks": checks})


def _pairs(mapping: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in mapping.items()]


def _mapping(pairs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {pair["name"]: pair["value"] for pair in pairs}
