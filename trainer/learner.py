"""The torch side: a model, its optimiser, and one update from rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from factory.core.errors import UserError
from factory.core.streams import stream
from trainer.batches import Batch, Row, micro_batches, row_weights
from trainer.diagnostics import TokenStatistics
from trainer.logprobs import token_logprobs
from trainer.losses import LossConfig, surrogate


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """How rows move the weights."""

    learning_rate: float = 3e-4
    """AdamW's step size. 3e-4 suits the 0.2M-parameter policy (1.5e-3 lost what it knew within thirty steps); pretrained
    ones want 1e-6 to 1e-5."""
    warmup_steps: int = 0
    """Optimiser steps over which the rate rises linearly from 0."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's decay of the first and second moments."""
    weight_decay: float = 0.0
    """AdamW's decoupled decay, per unit of learning rate."""
    max_grad_norm: float = 1.0
    """The gradient's 2-norm is scaled down to this."""
    epochs: int = 2
    """Passes over the rows of one batch of rollouts."""
    minibatches: int = 2
    """Optimiser steps per pass; whole groups stay together."""
    tokens_per_micro_batch: int = 8192
    """Positions in one forward pass: memory, not mathematics."""
    loss: LossConfig = field(default_factory=LossConfig)

    def __post_init__(self) -> None:
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise UserError(f"learner.{name}", getattr(self, name), "a positive number")
        if not self.weight_decay >= 0:
            raise UserError("learner.weight_decay", self.weight_decay, "0 or more")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise UserError("learner.betas", self.betas, "two numbers from 0 to below 1")
        for name in ("epochs", "minibatches", "tokens_per_micro_batch"):
            if getattr(self, name) < 1:
                raise UserError(f"learner.{name}", getattr(self, name), "at least 1")


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one call of `Learner.update` did."""

    optimiser_steps: int
    skipped: int
    """Optimiser steps left out because the loss or the gradient was not finite."""
    loss: float
    grad_norm: float
    """Mean 2-norm before clipping, over the steps taken; 0 without one."""
    trained_tokens: int
    statistics: dict[str, float]


class Learner:
    """Owns the model's parameters in training. Draws nothing from global random state."""

    def __init__(self, model: Any, config: LearnerConfig, *, temperature: float, reference: Any | None = None) -> None:
        """`reference` is the policy of the KL penalty. Raises UserError when the penalty is on without one."""
        if config.loss.kl > 0 and reference is None:
            raise UserError("loss.kl", config.loss.kl, "0 where there is no reference policy")
        self.model = model.eval()
        self.reference = None if reference is None else reference.eval().requires_grad_(False)
        self.config = config
        self.temperature = temperature
        self.device = model.get_output_embeddings().weight.device
        self.optimiser = torch.optim.AdamW(
            model.parameters(), lr=config.learning_rate, betas=config.betas, weight_decay=config.weight_decay
        )
        self.steps = 0

    def update(self, groups: Sequence[Sequence[Row]], *, seed: int) -> Update:
        """`epochs` x `minibatches` AdamW steps over `groups` (rows that share a baseline), in an order drawn from `seed`.

        Without a row nothing is touched: neither momentum nor decay moves the weights on a batch without signal.
        """
        groups = [list(group) for group in groups if group]
        if self.config.loss.truncation is not None:
            groups = self._with_before(groups)
        statistics = TokenStatistics()
        losses: list[float] = []
        norms: list[float] = []
        skipped = trained = 0
        for epoch in range(self.config.epochs):
            order = list(range(len(groups)))
            stream(seed, "minibatches", epoch).shuffle(order)
            count = min(self.config.minibatches, len(groups))
            for part in range(count):
                rows = [row for index in order[part::count] for row in groups[index]]
                loss, norm = self._step(rows, statistics)
                if norm is None:
                    skipped += 1
                    continue
                losses.append(loss)
                norms.append(norm)
                trained += sum(row.trained for row in rows)
        return Update(
            optimiser_steps=len(norms),
            skipped=skipped,
            loss=math.fsum(losses) / len(losses) if losses else 0.0,
            grad_norm=math.fsum(norms) / len(norms) if norms else 0.0,
            trained_tokens=trained,
            statistics=statistics.summary(),
        )

    def _step(self, rows: list[Row], statistics: TokenStatistics) -> tuple[float, float | None]:
        """One optimiser step; the norm is None when it was skipped as not finite."""
        self.optimiser.zero_grad(set_to_none=True)
        total = 0.0
        for batch in self._batches(rows):
            logprobs, entropy = self._score(self.model, batch)
            result = surrogate(
                logprobs,
                behaviour=batch.behaviour,
                advantages=batch.advantages,
                weights=batch.weights,
                config=self.config.loss,
                before=batch.before,
                reference=self._reference(batch),
            )
            loss = result.loss.item()
            if not math.isfinite(loss):
                self.optimiser.zero_grad(set_to_none=True)
                return loss, None
            torch.autograd.backward(result.loss)
            total += loss
            statistics.add(result, logprobs=logprobs, behaviour=batch.behaviour, entropy=entropy, mask=batch.mask)
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm))
        if not math.isfinite(norm):
            self.optimiser.zero_grad(set_to_none=True)
            return total, None
        self.steps += 1
        rate = self.config.learning_rate * min(1.0, self.steps / max(1, self.config.warmup_steps))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return total, norm

    def _batches(self, rows: Sequence[Row]) -> Iterator[Batch]:
        weights = row_weights(rows, self.config.loss)
        return micro_batches(rows, weights, tokens=self.config.tokens_per_micro_batch, device=self.device)

    def _score(self, model: Any, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        return token_logprobs(
            model,
            batch.ids,
            batch.mask,
            temperature=self.temperature,
            positions=batch.positions,
            attention=batch.attention,
        )

    @torch.no_grad()
    def _reference(self, batch: Batch) -> torch.Tensor | None:
        if self.reference is None or self.config.loss.kl == 0:
            return None
        return self._score(self.reference, batch)[0]

    @torch.no_grad()
    def _with_before(self, groups: Sequence[Sequence[Row]]) -> list[list[Row]]:
        """The rows with the log-probabilities of the weights as they are now."""
        result: list[list[Row]] = []
        for group in groups:
            scored: list[Row] = []
            for batch in self._batches(group):
                for row, values in zip(batch.rows, self._score(self.model, batch)[0].tolist(), strict=True):
                    scored.append(replace(row, before=(0.0, *values[: len(row.ids) - 1])))
            result.append(scored)
        return result

    def state(self) -> dict[str, Any]:
        """Everything that the next update depends on."""
        return {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict(), "steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`, bit for bit."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.steps = state["steps"]
