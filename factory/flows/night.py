"""One night: the run's record, its budget, and its stages as shards that are done once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from factory.core.streams import stream_seed
from factory.flows.begun import begin_run
from factory.flows.budget import Budget, BudgetConfig
from factory.flows.workshop import Workshop
from factory.settings import Settings
from registry.runs import RunRow

FLOW = "nightly"
SHARDS_AT_ONCE = 2
"""Shards of one run at work at the same time."""


class Progress(Protocol):
    """What a person sees of a run."""

    def stage(self, name: str, total: int | None) -> None:
        """A stage of `total` shards begins; None: how many is not known before the end."""
        ...

    def advance(self, detail: str = "") -> None:
        """One shard is done."""
        ...

    def note(self, line: str) -> None:
        """One line for people."""
        ...


class Silent:
    """Progress that nobody watches."""

    def stage(self, name: str, total: int | None) -> None: ...

    def advance(self, detail: str = "") -> None: ...

    def note(self, line: str) -> None: ...


@dataclass
class Night:
    """What every stage of one run works with."""

    shop: Workshop
    run: RunRow
    seed: int
    budget: Budget
    progress: Progress = field(default_factory=Silent)
    stopped: str = ""
    """Which budget ended the run; empty while none did."""

    @classmethod
    def begin(cls, shop: Workshop, day: date, progress: Progress) -> Night:
        """Begin or resume the run of `day`. Raises UserError when it was begun with other settings."""
        settings = shop.settings
        run = begin_run(shop.registry, settings, FLOW, day.isoformat(), option="--date")
        seed = settings.generate.seed
        bounds = settings.nightly
        budget = Budget(
            BudgetConfig(
                seconds=bounds.seconds,
                disk_bytes=None if bounds.disk_gib is None else round(bounds.disk_gib * 2**30),
                tokens=bounds.tokens,
            ),
            settings.data,
        )
        return cls(shop, run, stream_seed(day.toordinal(), FLOW) if seed is None else seed, budget, progress)

    @classmethod
    def claim(cls, settings: Settings, day: date) -> None:
        """Begin or resume the run of `day` and open what it works with, so that what is wrong is told before Prefect starts.

        Raises what `begin` raises, UserError, and SandboxError when the back end can not work here.
        """
        with Workshop.open(settings) as shop:
            cls.begin(shop, day, Silent())
            _ = shop.backend

    @classmethod
    def occasion(cls, shop: Workshop, name: str, *, seed: int, progress: Progress) -> Night:
        """A run of single stages outside any night, named by what it does; without budgets."""
        run = begin_run(shop.registry, shop.settings, "command", name, option="run")
        return cls(shop, run, seed, Budget(BudgetConfig(), shop.settings.data), progress)

    def spent(self) -> bool:
        """Whether a budget is used up; from then on no shard begins."""
        self.stopped = self.stopped or self.budget.spent()
        return bool(self.stopped)

    def once(self, stage: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """The record of `stage`: of an earlier start, or of doing `work` now. None when a budget is used up."""
        held = self.shop.registry.stages(self.run.id).get(stage)
        if held is not None:
            return held.data
        if self.spent():
            return None
        started = time.monotonic()
        data = work()
        self.shop.registry.record_stage(self.run.id, stage, data, seconds=time.monotonic() - started)
        return data

    @contextmanager
    def timed(self, stage: str, data: dict[str, Any]) -> Iterator[None]:
        """Record a stage that each start repeats; `data` may be filled meanwhile, seconds add up over the starts."""
        held = self.shop.registry.stages(self.run.id).get(stage)
        started = time.monotonic() - (held.seconds if held else 0.0)
        yield
        self.shop.registry.record_stage(self.run.id, stage, data, seconds=time.monotonic() - started)
