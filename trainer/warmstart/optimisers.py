"""Optimisers of the warm start: AdamW for all parameters, or Muon for the hidden matrices with Adam for the rest."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal, cast

import torch

from factory.core.errors import UserError

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic Newton-Schulz iteration: steep at zero, so that small singular values grow fast (Jordan et al. 2024)."""


@dataclass(frozen=True, kw_only=True)
class OptimiserConfig:
    """How gradients move weights."""

    kind: Literal["muon", "adamw"] = "muon"
    """`muon` for the hidden matrices with Adam for the rest, or `adamw` for all; pretrained policies want the latter."""
    learning_rate: float = 3e-3
    """Adam's step size."""
    matrix_learning_rate: float = 0.01
    """Muon's step size: the spectral norm of an update of a square matrix."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Adam's decay of the first and second moments."""
    momentum: float = 0.95
    """Muon's decay of the gradient's running sum."""
    weight_decay: float = 0.0
    """Decoupled decay, per unit of learning rate."""
    warmup_steps: int = 10
    """Steps over which the rates rise linearly from 0."""
    decay_steps: int = 0
    """Steps after which the rates have fallen linearly to 0; 0 keeps them constant."""
    max_grad_norm: float = 1.0
    """The gradient's 2-norm is scaled down to this."""

    def __post_init__(self) -> None:
        if self.kind not in ("muon", "adamw"):
            raise UserError("warmstart.optimiser.kind", self.kind, "muon or adamw")
        for name in ("learning_rate", "matrix_learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise UserError(f"warmstart.optimiser.{name}", getattr(self, name), "a positive number")

    def scale(self, step: int) -> float:
        """Factor on the rates at `step`, counted from 0."""
        rise = min(1.0, (step + 1) / max(1, self.warmup_steps))
        fall = max(0.0, 1.0 - step / self.decay_steps) if self.decay_steps else 1.0
        return rise * fall


def orthogonalise(matrices: torch.Tensor, iterations: int = 5) -> torch.Tensor:
    """Replace the singular values of each [..., rows, columns] matrix by values near 1 (between 0.7 and 1.2).

    Newton-Schulz iteration of Muon (Jordan et al. 2024); rows must not outnumber columns for speed, not for truth.
    """
    a, b, c = COEFFICIENTS
    x = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    flip = x.shape[-2] > x.shape[-1]
    if flip:
        x = x.mT
    for _ in range(iterations):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: torch.Tensor = x.mT if flip else x
    return result


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised, for 2-dimensional weights. Matrices of one shape are treated at once."""

    def __init__(self, parameters: list[torch.nn.Parameter], *, lr: float, momentum: float, weight_decay: float) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update; the rate is multiplied by sqrt(max(1, rows / columns)) so that activations change alike."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[torch.Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes[parameter.shape].append(parameter)
            for (rows, columns), parameters in shapes.items():
                update = orthogonalise(torch.stack([self._momentum(parameter, group["momentum"]) for parameter in parameters]))
                rate = group["lr"] * max(1.0, rows / columns) ** 0.5
                for parameter, change in zip(parameters, update, strict=True):
                    if group["weight_decay"]:
                        parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(change, alpha=-rate)

    def _momentum(self, parameter: torch.Tensor, decay: float) -> torch.Tensor:
        """Nesterov momentum: the gradient plus the decayed running sum that already holds it."""
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        running = state["momentum"]
        gradient = cast(torch.Tensor, parameter.grad)
        running.lerp_(gradient, 1 - decay)
        return gradient.lerp(running, decay)


class Optimiser:
    """One or two torch optimisers behind one step, with the rate's schedule."""

    def __init__(self, model: torch.nn.Module, config: OptimiserConfig) -> None:
        self.config = config
        self.parameters = list(model.parameters())
        hidden = [
            parameter
            for name, parameter in model.named_parameters()
            if config.kind == "muon" and parameter.dim() == 2 and "embed" not in name and "lm_head" not in name
        ]
        chosen = set(map(id, hidden))
        rest = [parameter for parameter in self.parameters if id(parameter) not in chosen]
        self.parts: list[tuple[torch.optim.Optimizer, float]] = [
            (
                torch.optim.AdamW(
                    rest, lr=config.learning_rate, betas=config.betas, weight_decay=config.weight_decay, fused=True
                ),
                config.learning_rate,
            )
        ]
        if hidden:
            rate = config.matrix_learning_rate
            muon = Muon(hidden, lr=rate, momentum=config.momentum, weight_decay=config.weight_decay)
            self.parts.append((muon, rate))

    def step(self, number: int) -> float:
        """Apply the gradients as step `number` and clear them; returns their 2-norm before clipping."""
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.config.max_grad_norm)
        scale = self.config.scale(number)
        for part, rate in self.parts:
            for group in part.param_groups:
                group["lr"] = rate * scale
            part.step()
            part.zero_grad(set_to_none=True)
        return float(norm)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The state as named tensors, for a checkpoint."""
        return {
            f"{part}.{number}.{key}": value
            for part, (optimiser, _) in enumerate(self.parts)
            for number, entry in optimiser.state_dict()["state"].items()
            for key, value in entry.items()
        }

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Take the state back from `tensors`."""
        for part, (optimiser, _) in enumerate(self.parts):
            state: dict[int, dict[str, torch.Tensor]] = defaultdict(dict)
            for name, value in tensors.items():
                owner, number, key = name.split(".")
                if int(owner) == part:
                    state[int(number)][key] = value
            optimiser.load_state_dict({"state": dict(state), "param_groups": optimiser.state_dict()["param_groups"]})
