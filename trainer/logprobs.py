"""Log-probabilities of given tokens under a torch model, at the sampling temperature.

Shapes: B rows, S positions, T = S - 1 predicted tokens, N trained tokens of the batch, H hidden, V vocabulary.
The sampler draws from softmax(logits / temperature), so the learner scores under the same distribution.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

LOGITS_IN_FLIGHT = 1 << 24
"""Most fp32 logits held at once (64 MiB); above it they are computed in pieces and again for the gradient."""


def token_logprobs(
    model: Any,
    ids: torch.Tensor,
    mask: torch.Tensor,
    *,
    temperature: float,
    positions: torch.Tensor | None = None,
    attention: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy, both [B, T] fp32 and 0 where `mask` is False; entropy carries no gradient.

    `ids` is [B, S]; `mask` is [B, T] and True at t where the token ids[:, t + 1] is wanted. `positions` and
    `attention` ([B, S]) are needed only for left-padded rows. The head runs on wanted positions alone.
    """
    hidden = model.base_model(input_ids=ids, attention_mask=attention, position_ids=positions, use_cache=False)
    states = hidden.last_hidden_state[:, :-1][mask]
    targets = ids[:, 1:][mask]
    head = model.get_output_embeddings()
    piece = max(1, LOGITS_IN_FLIGHT // head.weight.shape[0])
    logprobs, entropies = [], []
    for start in range(0, len(targets), piece):
        part = (head, states[start : start + piece], targets[start : start + piece], temperature)
        if len(targets) > piece and torch.is_grad_enabled():
            logprob, entropy = checkpoint(_scored, *part, use_reentrant=False, preserve_rng_state=False)
        else:
            logprob, entropy = _scored(*part)
        logprobs.append(logprob)
        entropies.append(entropy)
    grid = torch.zeros(mask.shape, dtype=torch.float32, device=ids.device)
    if not logprobs:
        return grid, grid.clone()
    return grid.masked_scatter(mask, torch.cat(logprobs)), grid.masked_scatter(mask, torch.cat(entropies))


def _scored(
    head: torch.nn.Module, states: torch.Tensor, targets: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    distribution = torch.log_softmax(head(states).float() / temperature, dim=-1)
    plain = distribution.detach()
    return distribution.gather(1, targets[:, None]).squeeze(1), -(plain.exp() * plain).sum(-1)


@torch.no_grad()
def sequence_logprobs(model: Any, sequences: list[tuple[int, ...]], *, temperature: float) -> list[list[float]]:
    """Log-probability of each token after the first of each sequence: what `TokenClient.score` answers."""
    device = model.get_output_embeddings().weight.device
    result = []
    for sequence in sequences:
        ids = torch.tensor([sequence], device=device)
        wanted = torch.ones((1, len(sequence) - 1), dtype=torch.bool, device=device)
        result.append(token_logprobs(model, ids, wanted, temperature=temperature)[0][0].tolist())
    return result
