"""What a report is made of, read from the registry at once: no statement per task."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from factory.core.assessment import TaskStatus
from factory.settings import Settings
from registry.policies import PolicyRow
from registry.queries import TaskRow
from registry.rollouts import TrajectoryRow
from registry.runs import RunRow, StageRow
from registry.splits import Split
from registry.store import Registry

SETTINGS = "settings"
"""The stage of a run that keeps the settings which it was begun with."""
_MAKE = re.compile(r"make (?P<kind>\S+) \d+-\d+(?: of \S+)?")
_STEP = re.compile(r"train/\d+")
TRIAGE = "triage "
"""How the stage begins that says whether a project of a fleet may serve; its name follows."""
EVALUATE = "evaluate "
"""How the stage begins that holds an evaluation; the policy version follows."""


@dataclass(frozen=True, kw_only=True)
class Records:
    """Rows of one registry, as one policy line and one split see them."""

    line: str
    split: str
    tasks: list[TaskRow]
    """Every task, the withdrawn among them."""
    runs: list[RunRow]
    """Oldest first."""
    stages: dict[str, dict[str, StageRow]]
    """Stages by run and name, in the order of their recording."""
    trajectories: list[TrajectoryRow]
    """Newest first."""
    policies: list[PolicyRow]
    splits: list[Split]

    @classmethod
    def read(cls, registry: Registry, settings: Settings) -> Records:
        """Everything that figures are computed from, bodies of trajectories and evidence apart."""
        line, split = settings.policy.line, settings.split.name
        runs = registry.runs()[::-1]
        return cls(
            line=line,
            split=split,
            tasks=[row for status in TaskStatus for row in registry.query(status=status, line=line, split=split)],
            runs=runs,
            stages={run.id: registry.stages(run.id) for run in runs},
            trajectories=registry.trajectories(),
            policies=registry.policies(),
            splits=registry.splits(),
        )

    def of_stage(self, name: str) -> Iterator[tuple[RunRow, StageRow]]:
        """Every run's stage of this name."""
        for run in self.runs:
            if name in self.stages[run.id]:
                yield run, self.stages[run.id][name]

    def shards(self) -> Iterator[tuple[str, str, StageRow]]:
        """Stages that made candidates, with their run and kind."""
        for run, stages in self.stages.items():
            for name, stage in stages.items():
                if found := _MAKE.fullmatch(name):
                    yield run, found["kind"], stage

    def steps(self, run: str) -> list[StageRow]:
        """Training steps of a run, in order."""
        return [stage for name, stage in sorted(self.stages[run].items()) if _STEP.fullmatch(name)]

    def evaluations(self, run: str) -> list[StageRow]:
        """Evaluations of a run, in the order in which they were made."""
        return [stage for name, stage in self.stages[run].items() if name.startswith(EVALUATE)]


def group_of(stage: str) -> str:
    """The name under which stages of one sort are added up: shards of one kind, steps, evaluations."""
    if found := _MAKE.fullmatch(stage):
        return f"make {found['kind']}"
    if _STEP.fullmatch(stage):
        return "train"
    for prefix in (EVALUATE, TRIAGE):
        if stage.startswith(prefix):
            return prefix.strip()
    return stage


def seconds_between(begun: str, ended: str) -> float:
    """Seconds from one instant of the registry to another."""
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()
