"""Policy versions: weights named by digest."""

from __future__ import annotations

from dataclasses import dataclass

from factory.core.digest import Digest


@dataclass(frozen=True, kw_only=True)
class PolicyVersion:
    """A language model at one version of its weights."""

    line: str
    """Name of the lineage: `tiny`, `smollm2`."""
    weights: Digest
    """Digest over the sorted tensors of the weights (name, dtype, shape, bytes)."""
    step: int = 0
    """Optimiser steps since the line began; 0 for the first version."""

    @property
    def name(self) -> str:
        """`line@` and twelve digits of the digest."""
        return f"{self.line}@{self.weights[:12]}"
