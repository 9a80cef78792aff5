"""Against the model's own full forward pass, which shares nothing with the selective head."""

from __future__ import annotations

import pytest
import torch

from trainer import logprobs as module
from trainer.logprobs import sequence_logprobs, token_logprobs

from .support import tiny_llama


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_equals_the_full_forward_pass(tied: bool, temperature: float) -> None:
    model = tiny_llama(tied=tied)
    ids = torch.tensor([[1, 2, 3, 4, 5], [7, 8, 9, 10, 11]])
    mask = torch.tensor([[False, True, True, False], [True, False, False, True]])
    values, entropy = token_logprobs(model, ids, mask, temperature=temperature)
    table = (model(ids).logits[:, :-1] / temperature).log_softmax(-1)
    expected = table.gather(2, ids[:, 1:, None]).squeeze(2) * mask
    assert torch.allclose(values, expected, atol=1e-5)
    assert torch.allclose(entropy, torch.distributions.Categorical(logits=table).entropy() * mask, atol=1e-5)
    assert not entropy.requires_grad


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_llama()
    ids = torch.arange(1, 13).reshape(2, 6)
    mask = torch.ones((2, 5), dtype=torch.bool)
    results = []
    for limit in (1 << 24, 3 * 32):
        monkeypatch.setattr(module, "LOGITS_IN_FLIGHT", limit)
        model.zero_grad()
        values, _ = token_logprobs(model, ids, mask, temperature=0.9)
        (values * torch.arange(10).reshape(2, 5)).mean().backward()
        results.append((values.detach(), model.model.embed_tokens.weight.grad.clone()))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-6)
    assert torch.allclose(results[0][1], results[1][1], atol=1e-5)


def test_nothing_to_score() -> None:
    model = tiny_llama()
    values, entropy = token_logprobs(model, torch.tensor([[1, 2, 3]]), torch.zeros((1, 2), dtype=torch.bool), temperature=1.0)
    assert values.tolist() == [[0.0, 0.0]] and entropy.tolist() == [[0.0, 0.0]]


def test_sequences_of_different_lengths() -> None:
    model = tiny_llama()
    sequences = [(1, 2, 3), (4, 5)]
    found = sequence_logprobs(model, sequences, temperature=0.5)
    for sequence, values in zip(sequences, found, strict=True):
        table = (model(torch.tensor([sequence])).logits[0].detach() / 0.5).log_softmax(-1)
        assert values == pytest.approx([float(table[i, token]) for i, token in enumerate(sequence[1:])], abs=1e-5)
