from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from factory.agent.formats import load_format
from factory.agent.formats.tiny import TinyFormat
from trainer.policies.storage import load_model, weights_digest
from trainer.policies.tiny import TinyConfig, make_tiny, orthonormal, tiny_model
from trainer.policies.tiny_tokenizer import TokenizerConfig, train_tokenizer

TOKENIZER = TokenizerConfig(syllables=("ka", "lo", "mi", "fe", "du", "ro"))
TEXTS = ["copy kalo to milo and then rename femi to duro"] * 8


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, TOKENIZER)


def test_the_seed_alone_decides_the_weights(tokenizer: Tokenizer) -> None:
    torch.manual_seed(1)
    first = weights_digest(tiny_model(tokenizer, TinyConfig(tokenizer=TOKENIZER, seed=3)).state_dict())
    torch.manual_seed(2)
    assert weights_digest(tiny_model(tokenizer, TinyConfig(tokenizer=TOKENIZER, seed=3)).state_dict()) == first
    assert weights_digest(tiny_model(tokenizer, TinyConfig(tokenizer=TOKENIZER, seed=4)).state_dict()) != first


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_the_number_of_threads_changes_no_weight(tokenizer: Tokenizer, threads: Callable[[int], None]) -> None:
    """A first version made again, after a kill, in a process that has sampled meanwhile, is the same version."""
    digests = set()
    for count in (1, 2, 4):
        threads(count)
        digests.add(weights_digest(tiny_model(tokenizer, TinyConfig(tokenizer=TOKENIZER, seed=3)).state_dict()))
    assert len(digests) == 1


def test_orthonormal_rows_are_those_of_qr_up_to_sign() -> None:
    rows = torch.randn(12, 16, generator=torch.Generator().manual_seed(0))
    basis = orthonormal(rows)
    torch.testing.assert_close(basis @ basis.T, torch.eye(12))
    expected = torch.linalg.qr(rows.double().T)[0].T.float()
    torch.testing.assert_close(basis.abs(), expected.abs(), atol=1e-5, rtol=1e-4)


def test_size_is_as_planned(tokenizer: Tokenizer) -> None:
    model = tiny_model(tokenizer, TinyConfig(tokenizer=TOKENIZER))
    # by hand: 3 x (4 x 64 x 64 + 3 x 64 x 192 + 2 x 64) + 64 + 64 x vocabulary, the head being the embedding
    assert sum(parameter.numel() for parameter in model.parameters()) == 160_192 + 64 * tokenizer.get_vocab_size()
    assert model.config.head_dim == 32


def test_one_head_starts_by_attending_to_the_previous_token(tokenizer: Tokenizer) -> None:
    model = tiny_model(tokenizer, TinyConfig(tokenizer=TOKENIZER))
    model.set_attn_implementation("eager")
    ids = torch.randint(12, tokenizer.get_vocab_size(), (4, 60), generator=torch.Generator().manual_seed(0))
    attention = model(ids, output_attentions=True).attentions[0][:, 0]
    assert attention.diagonal(-1, dim1=-2, dim2=-1).mean() > 0.95
    plain = tiny_model(tokenizer, TinyConfig(tokenizer=TOKENIZER, circuits=False))
    plain.set_attn_implementation("eager")
    assert plain(ids, output_attentions=True).attentions[0][:, 0].diagonal(-1, dim1=-2, dim2=-1).mean() < 0.3


def test_made_folder_speaks_its_format(tmp_path: Path) -> None:
    version, folder = make_tiny(TEXTS, TinyConfig(tokenizer=TOKENIZER), root=tmp_path)
    assert (version.line, version.step, folder.parent.name, folder.name) == ("tiny", 0, "tiny", version.weights)
    format = load_format(folder)
    assert isinstance(format, TinyFormat)
    model = load_model(folder)
    assert model.config.vocab_size == format.tokenizer.get_vocab_size()
    assert {model.config.eos_token_id} == format.stop
