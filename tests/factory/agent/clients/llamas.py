"""Random tiny Llamas in the sizes that vLLM's CPU attention takes, and what torch says of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 500
CONTEXT = 512


def make_llama(folder: Path, *, tied: bool) -> LlamaForCausalLM:
    """Save a random model in `folder`; its logits are far from flat, so that temperature and order matter."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=tied,
        max_position_embeddings=CONTEXT,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = LlamaForCausalLM(config).eval()
    model.save_pretrained(folder)
    return model


def torch_logprobs(model: LlamaForCausalLM, ids: Sequence[int], temperature: float) -> list[float]:
    """Log-probability of each token after the first, by a plain forward pass."""
    with torch.no_grad():
        logits = model(torch.tensor([list(ids)])).logits[0, :-1].float() / temperature
    return torch.log_softmax(logits, -1).gather(1, torch.tensor(list(ids[1:])).unsqueeze(1)).squeeze(1).tolist()
