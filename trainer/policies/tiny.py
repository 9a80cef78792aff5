"""A policy that needs no download: a Llama of 0.2 million parameters, made here from a seed.

Shapes: d width, h heads, e head size. Two of its circuits are set by hand at initialisation, since
copying names is what all tasks need and what takes longest to emerge: in the first layer one head
attends to the previous token and writes down what that token was; in the second layer one head looks
for places whose previous token equals the current one (an induction head, Olsson et al. 2022).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from factory.agent.formats.tiny import END, PAD
from factory.core.policy import PolicyVersion
from factory.core.streams import stream_seed
from trainer.policies.storage import save_policy
from trainer.policies.tiny_tokenizer import TokenizerConfig, train_tokenizer

FAST_PAIRS = 3
"""Rotary pairs through which the previous-token head sees distance."""
PREVIOUS_STRENGTH = 2.5
"""Size of its queries and keys per unit of the constant; its score then falls by about 10 nats at the next token."""
INDUCTION_STRENGTH = 3.0
"""Size of the induction head's queries and keys per unit of a token's content."""


@dataclass(frozen=True, kw_only=True)
class TinyConfig:
    """Size and start of the tiny model."""

    tokenizer: TokenizerConfig
    width: int = 64
    layers: int = 3
    heads: int = 2
    """Width divided by heads is the head size; vLLM's attention on CPUs wants 32, 64, 80, 96, 112, 128, 192 or 256."""
    feed_forward: int = 192
    context: int = 4096
    """Longest sequence, tokens."""
    rope_theta: float = 10_000.0
    """Base of the rotary frequencies."""
    embedding_std: float = 0.1
    """Standard deviation of embeddings at the start; logits start with about eight times that."""
    circuits: bool = True
    """Whether the previous-token head and the induction head are set by hand."""
    seed: int = 0


def make_tiny(texts: Iterable[str], config: TinyConfig, *, root: Path, line: str = "tiny") -> tuple[PolicyVersion, Path]:
    """Train the tokenizer on `texts`, initialise the model, and save both as the first version of `line`."""
    tokenizer = train_tokenizer(texts, config.tokenizer)
    model = tiny_model(tokenizer, config)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "tokenizer.json"
        tokenizer.save(str(file))
        return save_policy(model, root=root, line=line, step=0, parent=None, format="tiny", tokenizer_file=file)


def tiny_model(tokenizer: Tokenizer, config: TinyConfig) -> LlamaForCausalLM:
    """A freshly initialised model; the same seed gives the same weights, whatever torch's global generator holds."""
    model: LlamaForCausalLM = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            head_dim=config.width // config.heads,
            intermediate_size=config.feed_forward,
            max_position_embeddings=config.context,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
            tie_word_embeddings=True,
            pad_token_id=tokenizer.token_to_id(PAD),
            bos_token_id=None,
            eos_token_id=tokenizer.token_to_id(END),
        )
    )
    generator = torch.Generator().manual_seed(stream_seed(config.seed, "tiny", "weights"))
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            if parameter.dim() == 2:
                parameter.copy_(_start(name, parameter.shape, config, generator))
        if config.circuits:
            _set_circuits(model, config, generator)
    return model


def _start(name: str, shape: torch.Size, config: TinyConfig, generator: torch.Generator) -> torch.Tensor:
    """Embeddings of the configured size, matrices that keep a unit vector's size, outputs of blocks scaled for depth."""
    std = config.embedding_std if "embed_tokens" in name else shape[1] ** -0.5
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        std *= config.embedding_std / math.sqrt(2 * config.layers)
    return torch.randn(shape, generator=generator) * std


def _set_circuits(model: LlamaForCausalLM, config: TinyConfig, generator: torch.Generator) -> None:
    """Write the two heads into the first head of the first two layers.

    Rotary position turns pair i of a head by `theta_i` per token. The previous-token head reads a constant
    through the fastest pairs, its key turned one step further, so that the score is greatest one token
    back. The induction head compares what tokens are through the slow half of the pairs, which hardly turn.
    """
    size = config.width // config.heads
    half = size // 2
    model.model.embed_tokens.weight[:, 0] = 4 * config.embedding_std  # the constant, four times any other entry
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    angles = config.rope_theta ** (-torch.arange(half) / half)
    fast = torch.arange(half) < FAST_PAIRS
    for projection, turn in ((first.q_proj, torch.zeros(half)), (first.k_proj, angles)):
        projection.weight[:size] = 0
        projection.weight[:half, 0] = PREVIOUS_STRENGTH * torch.cos(turn) * fast
        projection.weight[half:size, 0] = PREVIOUS_STRENGTH * torch.sin(turn) * fast
    basis = orthonormal(torch.randn(config.width, config.width, generator=generator))
    identity, place = basis[:size].clone(), basis[size : 2 * size]
    identity[:, 0] = 0  # what all tokens share tells nothing
    slow = (torch.arange(size) % half >= half // 2).unsqueeze(1)
    first.v_proj.weight[:size] = identity
    first.o_proj.weight[:, :size] = place.T * config.embedding_std
    second.q_proj.weight[:size] = identity * INDUCTION_STRENGTH * slow
    second.k_proj.weight[:size] = place * INDUCTION_STRENGTH * slow
    second.v_proj.weight[:size] = identity
    second.o_proj.weight[:, :size] = identity.T * config.embedding_std


def orthonormal(rows: torch.Tensor) -> torch.Tensor:
    """Orthonormal rows, [n, d], that span what the given ones do (Gram-Schmidt, twice), the same to the last bit everywhere.

    LAPACK's factorisation is not: its last bits change with the number of threads, and a policy's digest with them.
    """
    basis: list[list[float]] = []
    for row in rows.double().tolist():
        for known in basis * 2:
            along = math.fsum(x * y for x, y in zip(row, known, strict=True))
            row = [x - along * y for x, y in zip(row, known, strict=True)]
        size = math.sqrt(math.fsum(x * x for x in row))
        basis.append([x / size for x in row])
    return torch.tensor(basis)
