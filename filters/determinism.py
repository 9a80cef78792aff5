"""Determinism: the reference solution sees the same and is judged the same, whatever the machine around it does.

The first run is as the task says, on a machine left alone; every other runs in a cell of a matrix: with busy loops beside it,
and another time zone, locale, hash seed and umask. Those four are part of a task, so the rule of what may be varied is: a
value that differs from the default of `EnvironmentSpec` was asked for and is kept (`pinned`); a default was not, so
nothing may hang on it. Load is never part of a task. Agent and verifiers run in the same cell.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from factory.agent.environment import Step, replay
from factory.core.action import Action
from factory.core.assessment import Evidence
from factory.core.blobs import BlobStore
from factory.core.digest import Digest
from factory.core.errors import SandboxError
from factory.core.files import FileTree
from factory.core.outcome import Outcome, OutcomeKind
from factory.core.statistics import wilson
from factory.core.streams import stream
from factory.core.task import EnvironmentSpec, Task
from filters.validity import solution
from sandboxes.contract import Backend

VARIED = ("timezone", "locale", "hash_seed", "umask")
"""Fields of the environment that the matrix varies where the task leaves them at their defaults."""
EXCERPT = 200
"""Characters of an observation that a difference shows."""


@dataclass(frozen=True, kw_only=True)
class DeterminismConfig:
    """What is varied, and which agreement is enough."""

    floor: float = 0.99
    """Least share of runs whose verdicts equal the first run's. The default lets one of a hundred differ, and none of fewer."""
    load: int = 2
    """Busy loops beside a loaded run; half the runs are loaded, the others are not."""
    timezones: tuple[str, ...] = ("UTC", "<+0545>-5:45", "<-0930>9:30")
    """Rules instead of names: they need no files in the image."""
    locales: tuple[str, ...] = ("C.UTF-8", "C")
    """Values of `LC_ALL`."""
    hash_seeds: tuple[int, ...] = (0, 1, 4_294_967_295)
    """Values of `PYTHONHASHSEED`."""
    umasks: tuple[int, ...] = (0o022, 0o077, 0o000)
    """Masks of new files' rights, as numbers (TOML has `0o022`)."""
    masked_retries: int = 2
    """How often one run that the infrastructure spoiled is made again."""
    seed: int = 0
    """Of the draw that puts the values together."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What one run varies."""

    load: int
    """Busy loops beside it."""
    timezone: str
    locale: str
    hash_seed: int
    umask: int

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "umask": f"{self.umask:03o}"}


@dataclass(frozen=True)
class Run:
    """What was seen and judged in one cell."""

    cell: Cell
    outcome: Outcome
    observations: tuple[dict[str, Any], ...]
    """Of each turn; empty for one that ends the episode by itself."""
    masked: tuple[str, ...]
    """Faults of the attempts that were masked."""
    wall_s: float

    @property
    def judged(self) -> bool:
        return self.outcome.kind is not OutcomeKind.MASKED

    @property
    def verdicts(self) -> dict[str, Any]:
        """Everything that is compared: how the episode ended, and the state of each check of each verifier."""
        both = (("verifier", self.outcome.verdict), ("held_out", self.outcome.held_out))
        states = {f"{name} {check.name}": check.state.value for name, one in both if one for check in one.checks}
        return {"outcome": self.outcome.kind.value, "reason": self.outcome.reason.value, **states}


def check_determinism(
    task: Task,
    *,
    backend: Backend,
    blobs: BlobStore,
    times: int,
    config: DeterminismConfig | None = None,
    tell: Callable[[Cell], None] = lambda cell: None,
) -> Evidence:
    """Run the reference solution `times` times (at least 2), and compare every run with the first.

    `tell` hears of each cell when its run has ended. Raises ValueError for fewer times, SandboxError when the first run or all
    others stayed masked (the task is not judged) or a cell's policy is not offered, NotFound when the solution is not stored.
    """
    config = config or DeterminismConfig()
    actions = solution(task, blobs)
    wanted = cells(task, times, config)
    _check_offered(task, wanted, backend, blobs)
    runs = []
    for cell in wanted:
        runs.append(_run(task, actions, cell, backend, blobs, config.masked_retries))
        tell(cell)
    first, *others = runs
    if not first.judged or not any(run.judged for run in others):
        raise SandboxError(f"not judged, runs stayed masked, the last by {runs[-1 if first.judged else 0].masked[-1]}")
    return _evidence(task, first, others, backend, config)


def cells(task: Task, times: int, config: DeterminismConfig) -> list[Cell]:
    """The task's own cell without load, then `times - 1` others: every value of a column about as often as any other.

    Raises ValueError for less than two.
    """
    if times < 2:
        raise ValueError(f"a comparison needs at least 2 runs, not {times}")
    spec = task.environment
    own = {name: getattr(spec, name) for name in VARIED}
    values: dict[str, tuple[Any, ...]] = {
        "load": (config.load, 0) if config.load else (0,),
        "timezone": config.timezones,
        "locale": config.locales,
        "hash_seed": config.hash_seeds,
        "umask": config.umasks,
    }
    values |= {name: (own[name],) for name in pinned(spec)}
    columns: dict[str, list[Any]] = {}
    for name, known in values.items():
        others = [value for value in known if value != own.get(name)]
        turns = [*others, *([own[name]] if name in own else [])]
        column = [turns[place % len(turns)] for place in range(times - 1)]
        stream(config.seed, "determinism", task.digest, name).shuffle(column)
        columns[name] = column
    rest = [Cell(**{name: column[place] for name, column in columns.items()}) for place in range(times - 1)]
    return [Cell(load=0, **own), *rest]


def _check_offered(task: Task, wanted: Sequence[Cell], backend: Backend, blobs: BlobStore) -> None:
    """A time zone or locale that the back end does not offer is the asker's mistake: no run that is masked tells it."""
    for timezone, locale in sorted({(cell.timezone, cell.locale) for cell in wanted}):
        backend.open(replace(task.environment, timezone=timezone, locale=locale), blobs).close()


def pinned(spec: EnvironmentSpec) -> tuple[str, ...]:
    """Varied fields that the task asks for itself."""
    defaults = {field.name: field.default for field in fields(EnvironmentSpec)}
    return tuple(name for name in VARIED if getattr(spec, name) != defaults[name])


def _run(task: Task, actions: Sequence[Action], cell: Cell, backend: Backend, blobs: BlobStore, retries: int) -> Run:
    """One run in `cell`, made again while it is masked and `retries` are left."""
    policy = {name: getattr(cell, name) for name in VARIED}
    varied = replace(task, environment=replace(task.environment, **policy))
    masked: list[str] = []
    while True:
        observations: list[dict[str, Any]] = []

        def watch(step: Step, seen: list[dict[str, Any]] = observations) -> None:
            seen.append(asdict(step.observation) if step.observation else {})

        with _busy(cell.load, backend, blobs):
            started = time.perf_counter()
            outcome = replay(varied, actions, backend, blobs, watch=watch)
            run = Run(cell, outcome, tuple(observations), tuple(masked), time.perf_counter() - started)
        if run.judged or len(masked) >= retries:
            last = () if run.judged else (f"{outcome.reason.value}: {outcome.fault}",)
            return replace(run, masked=(*masked, *last))
        masked.append(f"{outcome.reason.value}: {outcome.fault}")


@contextmanager
def _busy(loops: int, backend: Backend, blobs: BlobStore) -> Iterator[None]:
    """So many busy loops in a sandbox of their own, on the machine where the runs are."""
    if not loops:
        yield
        return
    with backend.open(EnvironmentSpec(files=FileTree().save(blobs)), blobs) as sandbox:
        sandbox.run(f"for n in $(seq {loops}); do while :; do :; done & done", timeout_s=20, output_bytes=1000)
        yield


def _evidence(task: Task, first: Run, others: Sequence[Run], backend: Backend, config: DeterminismConfig) -> Evidence:
    judged = [run for run in others if run.judged]
    records = [_record(first, first), *(_record(run, first) for run in others)]
    compared = [record for record, run in zip(records[1:], others, strict=True) if run.judged]
    verdicts = _agreement([record["verdicts_agree"] for record in compared])
    passed = verdicts["share"] >= config.floor
    bad = [record for record in compared if not record["verdicts_agree"]]
    reason = f"verdicts agree in {verdicts['agree']} of {verdicts['of']} runs; another in {_named(bad[0])}" if bad else ""
    data: dict[str, object] = {
        "verdicts": verdicts,
        "observations": _agreement([record["observations_agree"] for record in compared]),
        "turns": [
            {"turn": turn + 1, **_agreement([_turn(run, turn) == _turn(first, turn) for run in judged])}
            for turn in range(len(first.observations))
        ],
        "differ": [_cell_of(record) for record in compared if record["differences"]],
        "values": _values(compared),
        "pinned": list(pinned(task.environment)),
        "floor": config.floor,
        "solved": first.outcome.solved,
        "masked": sum(len(run.masked) for run in (first, *others)),
        "not_judged": len(others) - len(judged),
        "runs": records,
        "image": backend.resolve(task.environment.image).digest,
        "backend": backend.name,
    }
    rule = f"verdicts of at least {config.floor:g} of the runs equal the first run's, under load and unpinned policies varied"
    return Evidence(filter="determinism", rule=rule, passed=passed, reason="" if passed else reason, data=data)


def _record(run: Run, first: Run) -> dict[str, Any]:
    verdicts = run.verdicts == first.verdicts
    seen = [_turn(run, turn) == _turn(first, turn) for turn in range(max(len(run.observations), len(first.observations)))]
    return {
        **run.cell.record(),
        "judged": run.judged,
        "verdicts_agree": verdicts,
        "observations_agree": all(seen),
        "differences": _differences(run, first) if run.judged else [],
        "end": _end(run.outcome),
        "masked": list(run.masked),
        "wall_s": round(run.wall_s, 4),
    }


def _turn(run: Run, turn: int) -> dict[str, Any] | None:
    return run.observations[turn] if turn < len(run.observations) else None


def _end(outcome: Outcome) -> Digest | None:
    return outcome.verdict.end if outcome.verdict else None


def _differences(run: Run, first: Run) -> list[dict[str, Any]]:
    """Fields of turns and states of checks in which the run is not like the first."""
    found: list[dict[str, Any]] = []
    for turn in range(max(len(run.observations), len(first.observations))):
        then, now = (_turn(one, turn) or {} for one in (first, run))
        for name in sorted(then.keys() | now.keys()):
            if then.get(name) != now.get(name):
                found.append({"where": f"turn {turn + 1} {name}", **_excerpts(then.get(name), now.get(name))})
    then, now = first.verdicts, run.verdicts
    found += [
        {"where": name, "first": then.get(name), "here": now.get(name)}
        for name in sorted(then.keys() | now.keys())
        if then.get(name) != now.get(name)
    ]
    return found


def _excerpts(then: Any, now: Any) -> dict[str, Any]:
    """Both values, of texts the part from their first different character on."""
    if not (isinstance(then, str) and isinstance(now, str)):
        return {"first": then, "here": now}
    at = next((place for place, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
    begin = max(0, at - EXCERPT // 4)
    return {"first": then[begin : begin + EXCERPT], "here": now[begin : begin + EXCERPT]}


def _agreement(agree: Sequence[bool]) -> dict[str, Any]:
    """Share of runs with its 95 % interval (Wilson); turns of one run are not independent, runs are."""
    found = wilson(sum(agree), len(agree))
    return {"agree": sum(agree), "of": len(agree), "share": found.mean, "low": found.low, "high": found.high}


def _values(compared: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, int]]]:
    """For each column and value: how many runs had it, and in how many observations or verdicts differed."""
    table: dict[str, dict[str, dict[str, int]]] = {}
    for name in ("load", *VARIED):
        column: dict[str, dict[str, int]] = {}
        for record in compared:
            counts = column.setdefault(str(record[name]), {"runs": 0, "observations_differ": 0, "verdicts_differ": 0})
            counts["runs"] += 1
            counts["observations_differ"] += not record["observations_agree"]
            counts["verdicts_differ"] += not record["verdicts_agree"]
        table[name] = column
    return table


def _cell_of(record: dict[str, Any]) -> dict[str, Any]:
    return {"cell": _named(record), "differences": record["differences"]}


def _named(record: dict[str, Any]) -> str:
    return " ".join(f"{name}={record[name]}" for name in ("load", *VARIED))
