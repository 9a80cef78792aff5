"""The warm start itself: from a policy folder that can not act to one that sometimes solves a task."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from factory.agent.formats import load_format
from factory.core.digest import digest_of
from factory.core.errors import TrainingStopped
from factory.core.policy import PolicyVersion
from trainer.logprobs import token_logprobs
from trainer.policies.storage import load_model, load_record, save_policy
from trainer.warmstart.checkpoints import Measurement, Progress, load_checkpoint, save_checkpoint
from trainer.warmstart.config import WarmStartConfig
from trainer.warmstart.demonstrations import Batch, Example, Series, Source, batches, collate
from trainer.warmstart.machine import keep_freed_memory
from trainer.warmstart.optimisers import Optimiser

logger = logging.getLogger(__name__)


def warm_start(
    config: WarmStartConfig,
    sources: Sequence[Source],
    *,
    root: Path,
    start: Path,
    on_measurement: Callable[[Measurement], None] = lambda measurement: None,
) -> tuple[PolicyVersion, Path]:
    """Train the policy in folder `start` on demonstrations of `sources` and save the result as a version of its line.

    Ends at the gate, or at the budget of steps or seconds, whichever comes first. A run that was killed
    goes on from its last checkpoint, and one that has ended gives the same version again.
    """
    run = WarmStart(config, sources, root=root, start=start)
    run.train(on_measurement)
    return run.save()


def loss_of(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """Weighted mean negative log-likelihood, nats. Positions of weight 0 get no gradient at all."""
    hidden = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state
    counted = batch.weights > 0
    head: torch.nn.Module = model.get_output_embeddings()
    logits = head(hidden[:, :-1][counted]).float()
    weights = batch.weights[counted]
    return (cross_entropy(logits, batch.ids[:, 1:][counted], reduction="none") * weights).sum() / weights.sum()


@torch.no_grad()
def pass_rates(model: PreTrainedModel, examples: Sequence[Example], *, pad: int, batch: int = 64) -> list[float]:
    """Chance that sampling at temperature 1 writes exactly the reference actions of each example.

    It is the product of the chances of the policy's own tokens, so nothing has to be sampled. Other
    solutions are not counted: the true pass rate is at least this.
    """
    chances = [0.0] * len(examples)
    order = sorted(range(len(examples)), key=lambda number: len(examples[number]))
    for begin in range(0, len(order), batch):
        numbers = order[begin : begin + batch]
        part = collate([examples[number] for number in numbers], prompt_weight=0.0, pad=pad)
        logprobs, _ = token_logprobs(model, part.ids, part.weights > 0, temperature=1.0)
        for number, chance in zip(numbers, logprobs.sum(dim=1).exp().tolist(), strict=True):
            chances[number] = chance
    return chances


class WarmStart:
    """One warm start with its checkpoint at `<root>/<line>/warmstart-<digest>/state.safetensors`."""

    def __init__(self, config: WarmStartConfig, sources: Sequence[Source], *, root: Path, start: Path) -> None:
        """Raises UserError when `start` is no policy folder."""
        torch.set_num_threads(config.threads)
        keep_freed_memory()
        self.config, self.root, self.start = config, root, start
        self.parent = load_record(start)
        format = load_format(start)
        self.model = load_model(start)
        self.pad = int(self.model.config.pad_token_id or 0)
        self.optimiser = Optimiser(self.model, config.optimiser)
        self.series = Series(sources, format, seed=config.seed, purpose="warm start", size=config.shard, longest=config.longest)
        gate = Series(sources, format, seed=config.seed, purpose="gate", size=config.gate_examples, longest=config.longest)
        self.gate = gate.shard(0)
        # The demonstrators' own settings are in what they show: other data is another run, never resumed from this one.
        shown = tuple(item.tokens.ids for item in (*self.gate, *self.series.shard(0)))
        name = digest_of([config.digest, self.parent.weights, shown])[:12]
        self.file = root / self.parent.line / f"warmstart-{name}" / "state.safetensors"
        self.progress = load_checkpoint(self.file, self.model, self.optimiser)
        self._shard = lru_cache(maxsize=max(1, -(-config.demonstrations // config.shard)))(self._batches)

    def train(self, on_measurement: Callable[[Measurement], None] = lambda measurement: None) -> Progress:
        """Go on until an end is reached; checkpoints on the way and at the end. Raises TrainingStopped at a loss not finite."""
        progress, config = self.progress, self.config
        progress.ended = self._end()
        begun = saved = time.perf_counter()
        before = progress.seconds
        losses: list[float] = []
        while not progress.ended:
            losses.append(self._step(self._batch(progress.step)))
            progress.step += 1
            progress.seconds = before + time.perf_counter() - begun
            if progress.step % config.gate_every == 0:
                on_measurement(self._measure(losses))
                losses.clear()
            progress.ended = self._end()
            if progress.ended or time.perf_counter() - saved >= config.checkpoint_seconds:
                save_checkpoint(self.file, self.model, self.optimiser, replace(progress, ended=""))
                saved = time.perf_counter()
        logger.info("warm start ended by %s at step %d after %.1f s", progress.ended, progress.step, progress.seconds)
        return progress

    def save(self) -> tuple[PolicyVersion, Path]:
        """The weights as they stand, as a version of the line."""
        return save_policy(
            self.model,
            root=self.root,
            line=self.parent.line,
            step=self.parent.step + self.progress.step,
            parent=self.parent.weights,
            format=self.parent.format,
            tokenizer_file=self.start / "tokenizer.json",
        )

    def _end(self) -> str:
        curve, progress = self.progress.curve, self.progress
        if curve and curve[-1].step == progress.step and curve[-1].pass_rate >= self.config.gate:
            return "gate"
        if progress.step >= self.config.max_steps:
            return "steps"
        return "seconds" if progress.seconds >= self.config.max_seconds else ""

    def _batch(self, step: int) -> Batch:
        """The batch of optimiser step `step`: shards in order, round and round."""
        shards = max(1, -(-self.config.demonstrations // self.config.shard))
        per_shard = self.config.shard // self.config.batch
        parts = self._shard(step // per_shard % shards)
        return parts[step % per_shard % len(parts)]

    def _batches(self, shard: int) -> list[Batch]:
        config = self.config
        return batches(self.series.shard(shard), config.batch, prompt_weight=config.prompt_weight, pad=self.pad)

    def _step(self, batch: Batch) -> float:
        autocast = torch.autocast("cpu", dtype=torch.bfloat16) if self.config.autocast else nullcontext()
        with autocast:
            loss = loss_of(self.model, batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise TrainingStopped(f"the loss of step {self.progress.step} of the warm start is not finite")
        loss.backward()
        self.optimiser.step(self.progress.step)
        self.progress.tokens += int((batch.weights > 0).sum())
        return value

    def _measure(self, losses: Sequence[float]) -> Measurement:
        chances = pass_rates(self.model, self.gate, pad=self.pad)
        depths: dict[str, list[float]] = defaultdict(list)
        for item, chance in zip(self.gate, chances, strict=True):
            depths[str(item.depth)].append(chance)
        measurement = Measurement(
            step=self.progress.step,
            seconds=round(self.progress.seconds, 3),
            loss=sum(losses) / len(losses) if losses else 0.0,
            pass_rate=sum(chances) / len(chances),
            by_depth={depth: sum(found) / len(found) for depth, found in sorted(depths.items())},
        )
        self.progress.curve.append(measurement)
        logger.info("warm start: %s", measurement)
        return measurement
