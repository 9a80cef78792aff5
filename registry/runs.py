"""Runs of flows: one for each flow and date, resumed when begun again, with counts and seconds per stage."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import select, update

from factory.core.digest import Digest
from factory.core.errors import Conflict, NotFound, UserError
from registry import audit
from registry.base import Store
from registry.database import insert_rows, now, plain, upsert
from registry.tables import run_events, run_stages, runs


class RunState(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    """Begun; after a kill it still says so, and beginning it again resumes it."""
    FINISHED = "finished"
    STOPPED = "stopped"
    """Ended cleanly at a budget, with what it had."""
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run of a flow."""

    id: str
    flow: str
    date: str
    config: Digest
    """Digest of the configuration it was begun with."""
    state: RunState
    reason: str
    created_at: str
    finished_at: str | None
    resumed: bool = False
    """Whether `begin_run` found it begun before."""


@dataclass(frozen=True, kw_only=True)
class StageRow:
    """What a stage of a run did: counts of the funnel, and seconds."""

    stage: str
    seconds: float
    data: dict[str, Any]
    updated_at: str


@dataclass(frozen=True, kw_only=True)
class RunEvent:
    """Something that happened in a run."""

    stage: str
    event: str
    data: dict[str, Any]
    created_at: str


class RunStore(Store):
    """Beginning, recording and finishing runs."""

    def begin_run(self, flow: str, date: str, config_digest: Digest) -> RunRow:
        """The run of `flow` for `date` (any text that names its occasion): a new one, or the one begun before, running again.

        Raises Conflict when it was begun with another configuration.
        """
        if not flow or not date:
            raise UserError("run", f"{flow}/{date}", "the name of a flow and a date")
        identity = f"{flow}/{date}"
        with self._database.write() as connection:
            held = connection.execute(select(runs).where(runs.c.id == identity)).first()
            if held is None:
                row = {"id": identity, "flow": flow, "date": date, "config": config_digest, "state": RunState.RUNNING.value}
                insert_rows(connection, runs, [{**row, "reason": "", "created_at": now(), "finished_at": None}])
                audit.record(connection, [("begin run", identity, {"config": config_digest})])
            elif held.config != config_digest:
                raise Conflict(
                    f"run {identity} was begun with configuration {held.config[:12]}, not {config_digest[:12]}: "
                    "use that configuration, or another date"
                )
            elif held.state in (RunState.STOPPED, RunState.FAILED):
                connection.execute(
                    update(runs).where(runs.c.id == identity).values(state=RunState.RUNNING.value, finished_at=None)
                )
        return self.run(identity, resumed=held is not None)

    def run(self, identity: str, *, resumed: bool = False) -> RunRow:
        """A run by its id (`flow/date`). Raises NotFound."""
        with self._database.read() as connection:
            row = connection.execute(select(runs).where(runs.c.id == identity)).first()
        if row is None:
            raise NotFound(f"no run {identity!r}")
        return _run(row, resumed)

    def runs(self, flow: str | None = None) -> list[RunRow]:
        """Runs, newest first: of one flow, or of all."""
        statement = select(runs).order_by(runs.c.created_at.desc(), runs.c.id.desc())
        if flow is not None:
            statement = statement.where(runs.c.flow == flow)
        with self._database.read() as connection:
            return [_run(row, False) for row in connection.execute(statement)]

    def record_stage(self, run: str, stage: str, data: dict[str, Any], *, seconds: float = 0.0) -> None:
        """Store what a stage did; recording it again replaces it. Raises Conflict for an unknown run."""
        row = {"run": run, "stage": stage, "seconds": seconds, "data": data, "updated_at": now()}
        with self._database.write() as connection:
            upsert(connection, run_stages, [row], keys=("run", "stage"))

    def stages(self, run: str) -> dict[str, StageRow]:
        """Stages of a run by name, in the order of their last recording."""
        statement = select(run_stages).where(run_stages.c.run == run).order_by(run_stages.c.updated_at, run_stages.c.stage)
        with self._database.read() as connection:
            return {
                row.stage: StageRow(stage=row.stage, seconds=row.seconds, data=row.data, updated_at=row.updated_at)
                for row in connection.execute(statement)
            }

    def record_event(self, run: str, stage: str, event: str, data: dict[str, Any] | None = None) -> None:
        """Append an event to a run. Raises Conflict for an unknown run."""
        row = {"run": run, "stage": stage, "event": plain(event), "data": data or {}, "created_at": now()}
        with self._database.write() as connection:
            insert_rows(connection, run_events, [row])

    def events(self, run: str) -> list[RunEvent]:
        """Events of a run, oldest first."""
        statement = select(run_events).where(run_events.c.run == run).order_by(run_events.c.id)
        with self._database.read() as connection:
            return [
                RunEvent(stage=row.stage, event=row.event, data=row.data, created_at=row.created_at)
                for row in connection.execute(statement)
            ]

    def finish_run(self, run: str, state: RunState = RunState.FINISHED, reason: str = "") -> RunRow:
        """End a run. Raises NotFound, and Conflict when it is finished and the state is another."""
        with self._database.write() as connection:
            held = connection.execute(select(runs.c.state).where(runs.c.id == run)).scalar_one_or_none()
            if held is None:
                raise NotFound(f"no run {run!r}")
            if held == RunState.FINISHED and state is not RunState.FINISHED:
                raise Conflict(f"run {run} is finished and cannot become {state.value}")
            values = {"state": state.value, "reason": plain(reason), "finished_at": now()}
            if held != state.value:
                connection.execute(update(runs).where(runs.c.id == run).values(**values))
                audit.record(connection, [("finish run", run, {"state": state.value, "reason": plain(reason)})])
        return self.run(run)


def _run(row: Any, resumed: bool) -> RunRow:
    return RunRow(
        id=row.id,
        flow=row.flow,
        date=row.date,
        config=row.config,
        state=RunState(row.state),
        reason=row.reason,
        created_at=row.created_at,
        finished_at=row.finished_at,
        resumed=resumed,
    )
