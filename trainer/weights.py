"""Weights from the learner into the sampling engine that lives in the same process.

vLLM's in-place reload (`reload_weights`) accepts tensors by their checkpoint names. Two traps follow it.
On the CPU linear layers run from packed copies: the reload repacks each layer it visits, but an output head that
is tied to the embedding is not visited, so its packed copy keeps the old weights and only a warning tells.
And the prefix cache holds keys and values of the old weights until it is reset. `trainer.canary` proves both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch

from factory.agent.contract import TokenClient
from factory.core.policy import PolicyVersion


class Engine(Protocol):
    """What is used of `vllm.LLM`."""

    def collective_rpc(
        self, method: Any, timeout: float | None = None, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any: ...

    def apply_model(self, func: Any) -> list[Any]: ...


class InProcessClient(TokenClient, Protocol):
    """A token client whose engine lives in this process."""

    @property
    def engine(self) -> Engine: ...

    def set_version(self, version: PolicyVersion) -> None: ...

    def reset_prefix_cache(self) -> None: ...


def named_weights(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters by their checkpoint names, detached; a tied head is the embedding and comes once."""
    for name, parameter in model.named_parameters():
        yield name, parameter.detach()


def sync_weights(model: torch.nn.Module, client: InProcessClient, version: PolicyVersion) -> None:
    """Make the engine sample from `model` and stamp it with `version`. No request may be in flight.

    Raises PolicyError when the prefix cache does not reset.
    """
    client.engine.collective_rpc("reload_weights", kwargs={"weights_iterator": named_weights(model)})
    client.engine.apply_model(repack_tied_head)
    client.reset_prefix_cache()
    client.set_version(version)


def repack_tied_head(model: torch.nn.Module) -> bool:
    """Pack the output head anew where it shares the embedding's tensor and runs from a packed copy; whether it did."""
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
    from vllm.platforms import current_platform

    head = getattr(model, "lm_head", None)
    tied = bool(getattr(model.config, "tie_word_embeddings", False))
    if head is None or not tied or not current_platform.is_cpu():
        return False
    dispatch_cpu_unquantized_gemm(head, remove_weight=False)
    return True
