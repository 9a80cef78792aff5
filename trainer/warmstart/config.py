"""Settings of a warm start."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from factory.core.digest import Digest, digest_bytes
from factory.core.errors import UserError
from trainer.warmstart.optimisers import OptimiserConfig


@dataclass(frozen=True, kw_only=True)
class WarmStartConfig:
    """What is learnt from, how, and when it is enough."""

    seed: int = 0
    """Seed of the series of demonstrations and of their order; in a night, where it is not set, the night's."""
    batch: int = 32
    """Demonstrations in one optimiser step."""
    shard: int = 2048
    """Demonstrations that are generated at a time."""
    demonstrations: int = 40_960
    """Size of the series, rounded up to shards; longer training goes round it again."""
    longest: int = 512
    """Demonstrations with more tokens are left out."""
    prompt_weight: float = 0.05
    """Weight of predicting a token that the policy is given, against 1 for one that it writes."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    autocast: bool = False
    """Whether matrix products run in bf16; weights and their updates stay in fp32."""
    gate: float = 0.35
    """Pass rate at temperature 1 on fresh demonstrations at which the warm start is done, in (0, 1]."""
    gate_examples: int = 256
    """Fresh demonstrations on which the pass rate is measured."""
    gate_every: int = 25
    """Optimiser steps between two measurements."""
    max_steps: int = 3000
    """Optimiser steps after which it ends below the gate."""
    max_seconds: float = 240.0
    """Seconds of work, over all runs of this warm start, after which it ends below the gate."""
    checkpoint_seconds: float = 10.0
    """Seconds between two checkpoints."""
    threads: int = 1
    """Threads of torch; the tiny model is fastest on one."""

    def __post_init__(self) -> None:
        for name in ("batch", "shard", "demonstrations", "longest", "gate_examples", "gate_every", "max_steps", "threads"):
            if getattr(self, name) < 1:
                raise UserError(f"warmstart.{name}", getattr(self, name), "at least 1")
        if self.shard < self.batch:
            raise UserError("warmstart.shard", self.shard, f"at least one batch ({self.batch})")
        if not 0 < self.gate <= 1:
            raise UserError("warmstart.gate", self.gate, "a pass rate above 0, at most 1")
        if not 0 <= self.prompt_weight <= 1:
            raise UserError("warmstart.prompt_weight", self.prompt_weight, "between 0 and 1")

    @property
    def digest(self) -> Digest:
        """Names what the weights depend on: all but the settings that only say when to stop or to save."""
        value = asdict(self)
        for name in ("gate", "max_steps", "max_seconds", "checkpoint_seconds"):
            del value[name]
        return digest_bytes(repr(sorted(value.items())).encode())
