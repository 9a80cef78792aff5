from __future__ import annotations

import json
import math
import struct
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factory.core.action import Action, Observation, ObservationRole
from factory.core.errors import NotFound, RegistryError
from factory.core.outcome import MASKING, Check, CheckState, Outcome, OutcomeKind, Termination, Verdict
from factory.core.reward import RewardComponents
from factory.core.trajectory import SAMPLED, Owner, Tokens, Trajectory, Turn
from registry.store import Registry
from registry.trajectories import from_parquet, from_table, to_parquet, to_table
from tests.registry.material import POLICY, trajectory

floats = st.floats(allow_nan=False)
texts = st.text(max_size=8)
pairs = st.dictionaries(texts, texts, max_size=3)
int32 = st.integers(-(2**31), 2**31 - 1)


@st.composite
def tokens(draw: st.DrawFn) -> Tokens:
    owners = tuple(draw(st.lists(st.sampled_from(Owner), max_size=6)))
    return Tokens(
        ids=tuple(draw(st.integers(0, 2**31 - 1)) for _ in owners),
        owners=owners,
        logprobs=tuple(draw(floats) if owner in SAMPLED else math.nan for owner in owners),
        versions=tuple(draw(st.integers(0, 2**15 - 1)) if owner in SAMPLED else -1 for owner in owners),
    )


verdicts = st.builds(
    Verdict,
    checks=st.lists(st.builds(Check, texts, st.sampled_from(CheckState), texts), max_size=3).map(tuple),
    verifier=texts,
    start=texts,
    end=texts,
    wall_s=floats,
    cpu_s=floats,
)
outcomes = st.one_of(
    st.builds(
        Outcome,
        kind=st.just(OutcomeKind.SCORED),
        reason=st.sampled_from(sorted(set(Termination) - MASKING)),
        verdict=verdicts,
        held_out=st.none() | verdicts,
        fault=texts,
        verify_s=floats,
    ),
    st.builds(
        Outcome,
        kind=st.sampled_from([OutcomeKind.MASKED, OutcomeKind.INVALID_TASK]),
        reason=st.sampled_from(Termination),
        verdict=st.none() | verdicts,
        held_out=st.none() | verdicts,
        fault=texts,
        verify_s=floats,
    ),
)
turns = st.builds(
    Turn,
    start=int32,
    end=int32,
    action=st.none() | st.builds(Action, texts, pairs),
    observation=st.none()
    | st.builds(
        Observation,
        text=texts,
        role=st.sampled_from(ObservationRole),
        omitted_bytes=st.integers(0, 2**62),
        exit_code=st.none() | int32,
        timed_out=st.booleans(),
    ),
    finish=texts,
    decode_s=floats,
    environment_s=floats,
    observe_s=floats,
)
components = st.builds(
    RewardComponents,
    outcome=floats,
    progress=floats,
    validity=floats,
    tokens=st.integers(0, 2**62),
    calls=st.integers(0, 2**62),
    seconds=floats,
    forbidden=st.integers(0, 2**62),
)
trajectories = st.builds(
    Trajectory,
    task=texts,
    group=texts,
    member=int32,
    policies=st.lists(texts, max_size=3).map(tuple),
    tokens=tokens(),
    turns=st.lists(turns, max_size=3).map(tuple),
    outcome=outcomes,
    components=st.none() | components,
    seed=st.integers(0, 2**63 - 1),
    temperature=floats,
    backend=texts,
    image=texts,
    environment=texts,
    reset_s=floats,
    queue_s=floats,
    extra=pairs,
)


def bits(value: object) -> object:
    """`value` with floats as their bits: NaN equals NaN, and 0.0 differs from -0.0."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, tuple):
        return tuple(bits(item) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        return type(value), tuple(bits(getattr(value, field.name)) for field in fields(value))
    return value


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(trajectories, max_size=3))
def test_parquet_loses_nothing(items: list[Trajectory]) -> None:
    data = to_parquet(to_table(items, purpose="train", run=None))
    assert bits(tuple(from_table(from_parquet(data)))) == bits(tuple(items))
    assert to_parquet(to_table(items, purpose="train", run=None)) == data


@pytest.mark.parametrize("bad", [{"group": "\ud800"}, {"seed": 2**63}, {"member": 2**31}])
def test_what_does_not_fit_the_schema_is_refused(registry: Registry, bad: dict[str, object]) -> None:
    from dataclasses import replace

    with pytest.raises(RegistryError, match="does not fit"):
        registry.add_trajectories([replace(trajectory("e" * 64), **bad)], purpose="train")
    assert registry.trajectories() == []


def test_another_schema_version_is_not_read() -> None:
    table = to_table([trajectory("e" * 64)], purpose="train", run=None)
    with pytest.raises(RegistryError, match="schema"):
        from_parquet(to_parquet(table.replace_schema_metadata({"envfactory.trajectories": "2"})))


def test_storing_listing_and_reading(registry: Registry) -> None:
    run = registry.begin_run("train", "one", "c" * 64).id
    one = [trajectory("e" * 64, member, solved=member % 2 == 0) for member in range(4)]
    masked = Trajectory(
        task="f" * 64,
        group="g",
        member=0,
        policies=(),
        tokens=Tokens(),
        turns=(),
        outcome=Outcome(kind=OutcomeKind.MASKED, reason=Termination.ENVIRONMENT_LOST, fault="killed"),
        components=None,
        seed=1,
        temperature=1.0,
    )
    assert registry.add_trajectories(one, purpose="train", run=run) == 4
    assert registry.add_trajectories(one, purpose="train", run=run) == 0
    assert registry.add_trajectories([masked], purpose="assess") == 1
    assert registry.add_trajectories([], purpose="assess") == 0
    rows = registry.trajectories(task="e" * 64)
    assert [row.member for row in rows] == [3, 2, 1, 0]
    assert bits(tuple(registry.read_trajectories(rows))) == bits(tuple(reversed(one)))
    first = rows[-1]
    assert (first.policy, first.tokens, first.sampled, first.turns, first.solved) == (POLICY.name, 5, 2, 1, True)
    assert (first.reason, first.held_out_solved, first.purpose, first.run) == (Termination.SUBMITTED, None, "train", run)
    assert [row.solved for row in registry.trajectories(run=run, solved=False)] == [False, False]
    lost = registry.trajectories(outcome=OutcomeKind.MASKED)
    assert [(row.task, row.policy, row.sampled) for row in lost] == [("f" * 64, "", 0)]
    assert bits(registry.trajectory(lost[0].id)) == bits(masked)
    assert len(registry.trajectories(policy=POLICY.name, purpose="train", limit=3)) == 3
    with pytest.raises(NotFound):
        registry.trajectory(10_000)


def test_an_export_is_one_parquet_file_that_other_libraries_read(registry: Registry, tmp_path: Path) -> None:
    registry.add_trajectories([trajectory("e" * 64, member) for member in range(3)], purpose="train")
    registry.add_trajectories([trajectory("f" * 64, member) for member in range(2)], purpose="evaluate")
    path = tmp_path / "all.parquet"
    assert registry.export_trajectories(path) == 5
    frame = pd.read_parquet(path)
    assert list(frame["task"].str[0]) == ["e"] * 3 + ["f"] * 2
    assert list(frame["purpose"]) == ["train"] * 3 + ["evaluate"] * 2
    assert list(frame["ids"][0]) == [5, 6, 40, 2, 9]
    # Owner 2 is a policy's action: the mask a reader derives from the documented columns.
    assert [float(lp) for lp, owner in zip(frame["logprobs"][0], frame["owners"][0], strict=True) if owner == 2] == [
        -0.25,
        -1.5,
    ]
    assert len(from_table(from_parquet(path.read_bytes()))) == 5
    chosen = registry.trajectories(task="f" * 64, limit=1)
    assert registry.export_trajectories(path, chosen) == 1
    assert pq.read_table(path).num_rows == 1
    assert registry.export_trajectories(path, []) == 0
    assert pq.read_table(path).num_rows == 0
    assert [entry.name for entry in tmp_path.glob(".*")] == []


def test_polars_reads_an_export(registry: Registry, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    registry.add_trajectories([trajectory("e" * 64)], purpose="train")
    registry.export_trajectories(tmp_path / "all.parquet")
    assert polars.read_parquet(tmp_path / "all.parquet")["ids"].to_list() == [[5, 6, 40, 2, 9]]


def test_datasets_reads_an_export(registry: Registry, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    registry.add_trajectories([trajectory("e" * 64)], purpose="train")
    registry.export_trajectories(tmp_path / "all.parquet")
    loaded = datasets.Dataset.from_parquet(str(tmp_path / "all.parquet"), cache_dir=str(tmp_path / "cache"))
    assert loaded[0]["ids"] == [5, 6, 40, 2, 9]


def test_the_schema_has_every_field_of_a_turn() -> None:
    from registry.trajectories import SCHEMA

    of_turns = SCHEMA.field("turns").type.value_type
    assert {of_turns.field(number).name for number in range(of_turns.num_fields)} == {field.name for field in fields(Turn)}


def test_an_export_says_which_tokens_are_trained_and_what_owners_mean(registry: Registry, tmp_path: Path) -> None:
    """Owners by hand: the mask takes what the policy sampled, reasoning unless it is left out; a slice keeps its lists."""
    thinking = trajectory("e" * 64, 1)
    owners = (Owner.SYSTEM, Owner.PROMPT, Owner.REASONING, Owner.ACTION, Owner.OBSERVATION)
    thinking = replace(thinking, tokens=replace(thinking.tokens, owners=owners))
    registry.add_trajectories([trajectory("e" * 64), thinking], purpose="train")
    path = tmp_path / "all.parquet"
    registry.export_trajectories(path)
    frame = pd.read_parquet(path)
    assert [list(mask) for mask in frame["loss_mask"]] == [[False, False, True, True, False]] * 2
    assert [list(one) for one in frame["owners"]] == [[0, 1, 2, 2, 4], [0, 1, 3, 2, 4]]
    registry.export_trajectories(path, registry.trajectories(limit=1), train_reasoning=False)
    assert [list(mask) for mask in pd.read_parquet(path)["loss_mask"]] == [[False, False, False, True, False]]
    metadata = pq.read_schema(path).metadata
    names = ["system", "prompt", "action", "reasoning", "observation", "injected_error", "template"]
    assert json.loads(metadata[b"envfactory.owners"]) == {str(code): name for code, name in enumerate(names)}
    assert json.loads(metadata[b"envfactory.loss_mask"]) == ["action"]
    assert repr(from_table(from_parquet(path.read_bytes()))) == repr([thinking])
