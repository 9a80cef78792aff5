"""A small data folder made by the flow's own stages: real generator, sandboxes, verifiers, filters and registry.

The policy alone is scripted: it knows the reference solutions and follows them where a request's seed says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from factory.agent.contract import Completion, Request
from factory.agent.formats import load_format
from factory.core.action import Action
from factory.core.blobs import get_json
from factory.core.demonstration import Demonstration
from factory.core.digest import Digest
from factory.core.task import Task
from factory.flows import assessing, making, policy_line, screening, splitting
from factory.flows.night import Night, Silent
from factory.flows.workshop import Workshop
from factory.settings import Settings, load_settings
from registry.policies import PolicyRow

DAY = date(2026, 1, 2)
CONFIG = """\
[generate]
seed = 1
terminal = {count}
database = 0
repository = 0

[split]
compositions = 2

[terminal]
families = ["make", "write", "delete"]
apart = ["store"]
apart_percent = 25
depth_weights = [1]
pools = 3

[policy]
samples = 3

[sandbox]
workers = 2
"""
"""The settings of `build` as a file, for commands that are started as processes."""


@dataclass(frozen=True)
class Small:
    """A data folder with everything but a trained policy."""

    data: Path
    settings: Settings
    config: Path
    digests: tuple[Digest, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """What a command needs to work on it."""
        return ("--config", str(self.config), "--data", str(self.data))

    def copy(self, folder: Path) -> Small:
        """The same in another place, free to be changed; the cache, whose files have owners, is made anew."""
        shutil.copytree(self.data, folder, ignore=shutil.ignore_patterns("cache"))
        settings = self.settings.model_copy(update={"data": folder})
        return Small(folder, settings, self.config, self.digests)


def small_settings(data: Path, *, count: int = 8, **flags: Any) -> Settings:
    """Settings of a night of `count` terminal tasks; `flags` are further tables."""
    return load_settings(write_config(data, count), data=data, **flags)


def write_config(data: Path, count: int = 8) -> Path:
    """The settings file beside the data folder."""
    path = data.with_name(f"{data.name}.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONFIG.format(count=count))
    return path


class Oracle:
    """A token client that writes the reference solution; where it `gives_up`, for two seeds of three, else it submits."""

    def __init__(self, shop: Workshop, policy: PolicyRow, tasks: Sequence[Task], *, gives_up: bool = True) -> None:
        self.version, self.gives_up, self.elsewhere = policy.version, gives_up, False
        self.format = load_format(policy_line.folder_of(shop, policy))
        self._solutions = {
            self.format.opening(task).ids: Demonstration.from_manifest(get_json(shop.blobs, task.solution)).actions
            for task in tasks
        }

    def complete(self, requests: Sequence[Request], *, temperature: float, stop: frozenset[int]) -> list[Completion]:
        return [self._completion(request, stop) for request in requests]

    def _completion(self, request: Request, stop: frozenset[int]) -> Completion:
        opening, actions = next(item for item in self._solutions.items() if request.prompt[: len(item[0])] == item[0])
        turn = sum(token in stop for token in request.prompt[len(opening) :])
        follows = (
            turn > 0 or not self.gives_up or request.seed % 3 > 0
        )  # each turn has a seed of its own: only the first may give up
        action = actions[turn] if follows and turn < len(actions) else Action("submit")
        ids = self.format.written(action)
        return Completion(ids=ids, logprobs=(-0.25,) * len(ids), finish="stop")

    def score(self, sequences: Sequence[tuple[int, ...]], *, temperature: float) -> list[list[float]]:
        return [[-0.25] * (len(ids) - 1) for ids in sequences]


def untrained_policy(shop: Workshop) -> PolicyRow:
    """The line's first version as a served policy begins: a tokenizer of its own, random weights, no warm start."""
    served = small_settings(shop.settings.data, policy={"servers": ("http://127.0.0.1:9",)})
    policy_line.ensure_policy(Workshop(served, shop.registry), seed=1, withheld=frozenset())
    found = shop.registry.latest_policy(shop.settings.policy.line)
    assert found is not None
    return found


def begin(shop: Workshop, day: date = DAY) -> Night:
    return Night.begin(shop, day, Silent())


def make_all(night: Night) -> list[Digest]:
    """Every shard of the night, one after the other."""
    return [digest for shard in making.shards(night) for digest in making.make(night, shard)]


def build(data: Path, *, count: int = 8) -> Small:
    """Make, screen, split, assess and accept; about ten seconds."""
    settings = small_settings(data, count=count)
    with Workshop.open(settings) as shop:
        night = begin(shop)
        digests = make_all(night)
        screening.screen(night, digests)
        screening.judge(night, digests)
        splitting.split(night, digests)
        policy = untrained_policy(shop)
        client = Oracle(shop, policy, [shop.registry.task(digest) for digest in digests])
        with night.timed("assess", {"policy": policy.version.name}):
            assessing.assess(night, digests, policy, client)
        record: dict[str, Any] = {}
        with night.timed("accept", record):
            record |= assessing.accept(night, digests, policy.version.line)
        shop.registry.alias_set("chosen", digests[0], expected=None)
        shop.registry.finish_run(night.run.id)
    return Small(data, settings, data.with_name(f"{data.name}.toml"), tuple(digests))
