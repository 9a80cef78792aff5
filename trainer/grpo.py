"""The GRPO loop: collect, update, sync, prove, record, checkpoint.

Given the same configuration, pool, policy and threads, a run in fp32 ends with the same bits whether or not it was
killed on the way: every random choice is a function of (seed, step, ...), rollouts are lock-step, the prefix cache
is empty at the start of each step, and a checkpoint holds everything else.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from factory.agent.rollout import RolloutConfig
from factory.core.digest import Digest, digest_of
from factory.core.errors import TrainingStopped, UserError
from factory.core.outcome import OutcomeKind, Termination
from factory.core.policy import PolicyVersion
from factory.core.reward import RewardConfig
from factory.core.streams import stream_seed
from factory.core.task import Task
from trainer.advantages import AdvantageConfig
from trainer.canary import TOLERANCES, Canary, CanaryConfig, CanaryResult
from trainer.checkpoints import Checkpoint, RunIdentity, load_checkpoint, save_checkpoint, settings_digest
from trainer.collect import Collected, Collector, Rollouts
from trainer.curriculum import Curriculum, CurriculumConfig
from trainer.diagnostics import Phases, masked_alarm
from trainer.learner import Learner, LearnerConfig, Update
from trainer.metrics import MetricsLog
from trainer.policies.storage import weights_digest
from trainer.weights import InProcessClient, sync_weights

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GrpoConfig:
    """One GRPO run. The defaults suit the 0.2M-parameter policy on two cores."""

    seed: int = 0
    """Seed of draws, rollouts and minibatches; each run's name is mixed into it."""
    steps: int | None = None
    """Steps to do in all, resumed ones included; None for no limit. One of `steps` and `seconds` must be set."""
    seconds: float | None = None
    """Wall time to spend in all, resumed runs included, seconds, checked between steps; None for no limit."""
    groups: int = 32
    """Informative groups of one step."""
    samples: int = 8
    """Rollouts in a group."""
    rounds: int = 2
    """Most times that a step draws tasks to replace groups without signal; what is missing then is its shortfall."""
    train_reasoning: bool = True
    """Whether reasoning tokens are trained on."""
    skipped_in_a_row: int = 5
    """Optimiser steps without a finite loss or gradient after which the run stops."""
    masked_share: float = 0.1
    """Share of masked rollouts in a step above which the alarm is raised."""
    checkpoint_every: int = 1
    """Steps between checkpoints."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    advantage: AdvantageConfig = field(default_factory=AdvantageConfig)
    reward: RewardConfig = field(default_factory=lambda: RewardConfig(per_call=-0.05))
    """The outcome, less a little for each call: going on after the task is done is not free."""
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    canary: CanaryConfig = field(default_factory=CanaryConfig)
    rollout: RolloutConfig = field(default_factory=lambda: RolloutConfig(invalid_calls="end", held_out=False))
    """How episodes are run; its sampling temperature is also the learner's. An invalid call ends the episode: what a
    policy writes after one is far from all that it knows, and there is enough of it to drown the rest of the gradient."""

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise UserError("train.steps", None, "a number of steps, or train.seconds: how long to train has no default")
        if self.samples < 2:
            raise UserError("train.samples", self.samples, "at least 2 rollouts in a group")
        for name in ("groups", "rounds", "checkpoint_every", "skipped_in_a_row"):
            if getattr(self, name) < 1:
                raise UserError(f"train.{name}", getattr(self, name), "at least 1")
        if not self.rollout.sampling.temperature > 0:
            raise UserError("train.temperature", self.rollout.sampling.temperature, "a positive number")

    def digest(self) -> Digest:
        """Of the settings that decide the result: budgets, checkpoints and alarms may differ on resume."""
        settings = asdict(self)
        for name in ("steps", "seconds", "checkpoint_every", "masked_share", "skipped_in_a_row"):
            del settings[name]
        for name in ("workers", "retries"):
            del settings["rollout"][name]
        return settings_digest(settings)


@dataclass(kw_only=True)
class Progress:
    """Counters of the whole run, kept in the checkpoint."""

    elapsed_s: float = 0.0
    rollouts: int = 0
    sampled_tokens: int = 0
    trained_tokens: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0


Sink = Callable[[int, Collected], None]
"""Takes what one step saw: trajectories, and tasks that proved broken. A resumed run offers the steps after its
checkpoint again, equal ones."""


class GrpoRun:
    """One run on explicit parts; `trainer.train.train` puts them together."""

    def __init__(
        self,
        config: GrpoConfig,
        *,
        model: Any,
        client: InProcessClient,
        engine_dtype: str,
        context: int,
        rollouts: Rollouts,
        tasks: Callable[[Digest], Task],
        evidence: Mapping[Digest, tuple[int, int]],
        out: Path,
        sink: Sink | None = None,
        reference: Any | None = None,
    ) -> None:
        """`evidence` is the pool (see `Curriculum`); `context` is the longest sequence that the client takes, in tokens.

        Continues from the newest checkpoint under `out`. Raises UserError when that belongs to another run.
        """
        self.config, self.client, self.out, self.sink = config, client, out, sink
        self.temperature = config.rollout.sampling.temperature
        self.learner = Learner(model, config.learner, temperature=self.temperature, reference=reference)
        self.base = client.version
        self.curriculum = Curriculum(evidence, config.curriculum, seed=config.seed)
        self.collector = Collector(
            tasks=tasks,
            rollouts=rollouts,
            curriculum=self.curriculum,
            reward=config.reward,
            advantage=config.advantage,
            groups=config.groups,
            samples=config.samples,
            rounds=config.rounds,
            train_reasoning=config.train_reasoning,
            seed=config.seed,
        )
        self.canary = Canary(config.canary, vocabulary=model.config.vocab_size, context=context, seed=config.seed)
        dtypes = {engine_dtype, str(model.dtype).removeprefix("torch.")}
        self.tolerance = max((TOLERANCES[dtype] for dtype in dtypes), key=lambda tolerance: tolerance.largest)
        self.identity = RunIdentity(
            config=config.digest(),
            policy=self.base.weights,
            tasks=digest_of(tuple(sorted(evidence))),
            engine=engine_dtype,
            threads=torch.get_num_threads(),
        )
        self.progress = Progress()
        self.step = 0
        self._resume()
        self.saved = self.step
        self.log = MetricsLog(out / "metrics.jsonl", after=self.step)

    def _resume(self) -> None:
        checkpoint = load_checkpoint(self.out / "checkpoints", self.identity)
        if checkpoint is not None:
            self.learner.restore(checkpoint.learner)
            self.curriculum.load(checkpoint.curriculum)
            self.progress = Progress(**checkpoint.progress)
            self.step = checkpoint.step
            logger.info("resumed after step %d", self.step)

    @property
    def version(self) -> PolicyVersion:
        """Name of the learner's present weights."""
        return PolicyVersion(
            line=self.base.line,
            weights=weights_digest(self.learner.model.state_dict()),
            step=self.base.step + self.learner.steps,
        )

    def run(self, report: Callable[[dict[str, Any]], None] | None = None) -> str:
        """Train until a budget is spent or SIGTERM comes. Returns why it ended.

        `report` gets each step's metrics; those of steps after the last checkpoint come again from a resumed run.

        The step in progress is finished and checkpointed first. Raises StaleWeights when the canary fails and
        TrainingStopped after too many updates without finite numbers.
        """
        with _termination() as stop:
            self._sync()
            started, before = monotonic(), self.progress.elapsed_s
            while not (reason := self._over(stop)):
                metrics = self._step()
                self.progress.elapsed_s = before + monotonic() - started
                metrics["elapsed_s"] = self.progress.elapsed_s
                self.log.append(metrics)  # before the checkpoint: a resumed run drops lines past it and writes them again
                if report is not None:
                    report(metrics)
                if self.step % self.config.checkpoint_every == 0:
                    self._save()
                if self.progress.skipped_in_a_row >= self.config.skipped_in_a_row:
                    raise TrainingStopped(f"{self.progress.skipped_in_a_row} updates in a row had no finite loss or gradient")
            if self.step != self.saved:
                self._save()
        return reason

    def _over(self, stop: threading.Event) -> str:
        if stop.is_set():
            return "terminated"
        if self.config.steps is not None and self.step >= self.config.steps:
            return "steps"
        if self.config.seconds is not None and self.progress.elapsed_s >= self.config.seconds:
            return "seconds"
        return ""

    def _step(self) -> dict[str, Any]:
        step = self.step + 1
        phases = Phases()
        with phases.time("rollout"):
            self.client.reset_prefix_cache()
            collected = self.collector.collect(step)
        with phases.time("learn"):
            update = self.learner.update(collected.groups, seed=stream_seed(self.config.seed, "update", step))
        with phases.time("sync"):
            canary = self._sync()
        if self.sink is not None:
            with phases.time("store"):
                self.sink(step, collected)
        self.step = step
        return self._metrics(collected, update, canary, phases)

    def _sync(self) -> CanaryResult:
        self.canary.prime(self.client, temperature=self.temperature)
        sync_weights(self.learner.model, self.client, self.version)
        return self.canary.check(self.client, self.learner.model, temperature=self.temperature, tolerance=self.tolerance)

    def _metrics(self, collected: Collected, update: Update, canary: CanaryResult, phases: Phases) -> dict[str, Any]:
        scored = [one for one in collected.trajectories if one.outcome.kind is OutcomeKind.SCORED]
        masked = len(collected.trajectories) - len(scored)
        sampled = sum(turn.end - turn.start for one in collected.trajectories for turn in one.turns)
        progress = self.progress
        progress.rollouts += len(collected.trajectories)
        progress.sampled_tokens += sampled
        progress.trained_tokens += update.trained_tokens
        progress.skipped += update.skipped
        if update.skipped or update.optimiser_steps:
            progress.skipped_in_a_row = 0 if update.optimiser_steps else progress.skipped_in_a_row + update.skipped
        alarm = masked_alarm(masked, len(collected.trajectories), self.config.masked_share)
        if alarm:
            logger.warning("step %d: %d of %d rollouts were masked", self.step, masked, len(collected.trajectories))
        rewards = [self.config.reward.reward(one.components) for one in scored if one.components is not None]
        return {
            "step": self.step,
            "policy": self.client.version.name,
            "reward": sum(rewards) / len(rewards) if rewards else None,
            "solved": sum(one.outcome.solved for one in scored) / len(scored) if scored else None,
            "rollouts": len(collected.trajectories),
            "masked": masked,
            "masked_alarm": alarm,
            "truncated": sum(one.outcome.reason is Termination.TOKEN_LIMIT for one in scored),
            "groups": {
                "drawn": collected.drawn,
                "informative": len(collected.groups),
                "uniform": collected.uniform,
                "starved": collected.starved,
                "shortfall": collected.shortfall,
                "rounds": collected.rounds,
                "quarantined": collected.quarantined,
                "invalid_tasks": len(collected.invalid),
            },
            "pool": self.curriculum.counts(),
            "update": {key: value for key, value in asdict(update).items() if key != "statistics"} | update.statistics,
            "canary": asdict(canary),
            "sampled_tokens": sampled,
            "tokens_per_s": sampled / phases.seconds["rollout"],
            "seconds": dict(phases.seconds),
        }

    def _save(self) -> None:
        checkpoint = Checkpoint(
            step=self.step,
            learner=self.learner.state(),
            curriculum=self.curriculum.dump(),
            progress=asdict(self.progress),
        )
        save_checkpoint(self.out / "checkpoints", checkpoint, self.identity)
        self.saved = self.step


@contextmanager
def _termination() -> Iterator[threading.Event]:
    """An event that SIGTERM sets; signals reach only the main thread, elsewhere the event is never set."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    previous = signal.signal(signal.SIGTERM, lambda number, frame: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGTERM, previous)
