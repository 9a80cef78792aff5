"""Checkpoints of a warm start: one file with every tensor and, in its header, where the run stands."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import PreTrainedModel

from trainer.policies.storage import untied
from trainer.warmstart.optimisers import Optimiser


@dataclass(frozen=True)
class Measurement:
    """The pass rate at one point of the curve."""

    step: int
    seconds: float
    """Work so far."""
    loss: float
    """Mean training loss since the measurement before, nats per weighted token."""
    pass_rate: float
    """Chance of writing the reference actions of a fresh demonstration exactly, sampling at temperature 1."""
    by_depth: dict[str, float]
    """The same by number of actions before the submission."""

    @property
    def line(self) -> str:
        """For people."""
        return f"warm start: step {self.step} after {self.seconds:.0f} s, loss {self.loss:.3f}, pass rate {self.pass_rate:.3f}"


@dataclass
class Progress:
    """Where a warm start stands. Data order needs no state of its own: it follows from the step."""

    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    curve: list[Measurement] = field(default_factory=list)
    ended: str = ""
    """`gate`, `steps` or `seconds`; empty while it goes on."""


def save_checkpoint(file: Path, model: PreTrainedModel, optimiser: Optimiser, progress: Progress) -> None:
    """Write the checkpoint, whole or not at all."""
    tensors = {f"model.{name}": tensor.detach().contiguous() for name, tensor in untied(model.state_dict()).items()}
    tensors |= {f"optimiser.{name}": tensor.detach().contiguous() for name, tensor in optimiser.tensors().items()}
    scratch = file.with_suffix(f".{os.getpid()}.tmp")
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, scratch, metadata={"progress": json.dumps(asdict(progress))})
    scratch.replace(file)


def load_checkpoint(file: Path, model: PreTrainedModel, optimiser: Optimiser) -> Progress:
    """Restore model and optimiser in place. A fresh Progress where there is no checkpoint yet."""
    if not file.exists():
        return Progress()
    with safe_open(file, framework="pt") as stored:
        tensors: dict[str, torch.Tensor] = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        value = json.loads(stored.metadata()["progress"])
    state = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= set(model.state_dict()) - set(untied(model.state_dict())), (missing, unexpected)
    optimiser.restore(
        {name.removeprefix("optimiser."): tensor for name, tensor in tensors.items() if name.startswith("optimiser.")}
    )
    return Progress(**{**value, "curve": [Measurement(**point) for point in value["curve"]]})
