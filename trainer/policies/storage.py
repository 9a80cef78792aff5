"""Policy folders: `<root>/<line>/<weights digest>/`.

A folder holds `config.json` and `model.safetensors` as transformers and vLLM read them, the
tokenizer's files, and `policy.json` with what names the version. There is no generation
configuration: how tokens are drawn is decided by who samples.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from factory.core.digest import Digest, is_digest
from factory.core.errors import PolicyError, UserError
from factory.core.policy import PolicyVersion

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json")
"""Copied along with the weights where they stand beside the first."""


@dataclass(frozen=True, kw_only=True)
class PolicyRecord:
    """What `policy.json` says."""

    line: str
    weights: Digest
    step: int
    parent: Digest | None
    """Weights digest of the version that this one was trained from; None for the first of a line."""
    format: str
    """Name of the action format that the policy was taught: `tiny`, `chat`."""
    tied: bool
    """Whether the output head is the embedding."""

    @property
    def version(self) -> PolicyVersion:
        return PolicyVersion(line=self.line, weights=self.weights, step=self.step)


def untied(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """`state` in sorted order, each tensor once.

    Where several names share one tensor the last name in order stays: for a tied head that is
    `model.embed_tokens.weight`, the name under which checkpoints are saved.
    """
    names: dict[tuple[object, ...], str] = {}
    for name in sorted(state):
        tensor = state[name]
        names[(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device)] = name
    return {name: state[name] for name in sorted(names.values())}


def weights_digest(state: Mapping[str, torch.Tensor]) -> Digest:
    """SHA-256 over the sorted tensors of `state`: name, dtype, shape and bytes; tied tensors count once."""
    whole = hashlib.sha256()
    for name, tensor in untied(state).items():
        data = tensor.detach().cpu().contiguous()
        head = json.dumps([name, str(data.dtype).removeprefix("torch."), list(data.shape)], separators=(",", ":"))
        whole.update(head.encode() + b"\n")
        whole.update(data.reshape(-1).view(torch.uint8).numpy().data)
    return whole.hexdigest()


def save_policy(
    model: PreTrainedModel, *, root: Path, line: str, step: int, parent: Digest | None, format: str, tokenizer_file: Path
) -> tuple[PolicyVersion, Path]:
    """Save `model` as a version of `line` and return it with its folder.

    The folder appears whole or not at all. Weights that are already there are not written again, and
    keep the step and parent of their first saving. Raises UserError for a line that is no plain name.
    """
    check_line(line)
    state = untied(model.state_dict())
    record = PolicyRecord(
        line=line,
        weights=weights_digest(state),
        step=step,
        parent=parent,
        format=format,
        tied=bool(model.config.tie_word_embeddings),
    )
    folder = root / line / record.weights
    if not (folder / "policy.json").exists():
        _write(folder, model, state, record, tokenizer_file)
    return load_version(folder), folder


def _write(
    folder: Path, model: PreTrainedModel, state: Mapping[str, torch.Tensor], record: PolicyRecord, tokenizer_file: Path
) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".saving-", dir=folder.parent))
    try:
        config = json.loads(model.config.to_json_string(use_diff=True))
        config |= {"architectures": [type(model).__name__], "dtype": str(model.dtype).removeprefix("torch.")}
        (scratch / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        save_file(tensors, scratch / "model.safetensors", metadata={"format": "pt"})
        for name in TOKENIZER_FILES:
            source = tokenizer_file.parent / name if name != TOKENIZER_FILES[0] else tokenizer_file
            if source.exists():
                shutil.copyfile(source, scratch / name)
        (scratch / "policy.json").write_text(json.dumps(vars(record), indent=2, sort_keys=True) + "\n")
        scratch.chmod(0o755)
        (scratch / "model.safetensors").chmod(0o644)
        scratch.replace(folder)
    except OSError:
        if not (folder / "policy.json").exists():
            raise  # another process may have won the rename with the same content
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def load_record(path: Path) -> PolicyRecord:
    """Read `policy.json` of a policy folder. Raises UserError when `path` is none."""
    try:
        return PolicyRecord(**json.loads((path / "policy.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise UserError("policy", str(path), "a policy folder with a readable policy.json") from error


def load_version(path: Path) -> PolicyVersion:
    """The version that stands in a policy folder. Raises UserError when `path` is none."""
    return load_record(path).version


def load_model(path: Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """The model of a policy folder, with its weights cast to `dtype`.

    Raises UserError when `path` is no policy folder and PolicyError when the stored weights are not those it names.
    """
    record = load_record(path)
    found = weights_digest(load_file(path / "model.safetensors"))
    if found != record.weights:
        raise PolicyError(f"{path}: weights have digest {found[:12]}, policy.json names {record.weights[:12]}")
    with _no_progress_bar():
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, attn_implementation="sdpa")
    return model


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Loading a folder is no event for a terminal: transformers draws a bar for it otherwise."""
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()


def latest_version(root: Path, line: str) -> tuple[PolicyVersion, Path] | None:
    """The version of `line` with the most steps, or None when the line has none."""
    folders = [path for path in (root / line).glob("*") if is_digest(path.name) and (path / "policy.json").exists()]
    found = sorted(((load_version(path), path) for path in folders), key=lambda pair: (pair[0].step, pair[0].weights))
    return found[-1] if found else None


def import_model(name_or_path: str, line: str, *, root: Path, dtype: torch.dtype = torch.float32) -> tuple[PolicyVersion, Path]:
    """Bring any causal language model that transformers can load (a folder, or a hub name) into a policy folder.

    The format is `chat`: the model's own tokenizer needs a chat template. Raises UserError when the
    model cannot be loaded or has no chat template.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(name_or_path)
        model = AutoModelForCausalLM.from_pretrained(name_or_path, dtype=dtype)
    except (OSError, ValueError) as error:
        raise UserError("model", name_or_path, f"a model that transformers can load ({str(error).splitlines()[0]})") from error
    if not tokenizer.chat_template:
        raise UserError("model", name_or_path, "a model whose tokenizer has a chat template")
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer.save_pretrained(scratch)
        return save_policy(
            model, root=root, line=line, step=0, parent=None, format="chat", tokenizer_file=Path(scratch) / TOKENIZER_FILES[0]
        )


def check_line(line: str) -> str:
    """Return `line` when it is a plain folder name. Raises UserError otherwise."""
    if not line or line.startswith(".") or not all(character.isalnum() or character in "-_." for character in line):
        raise UserError("policy.line", line, "letters, digits, `-`, `_` and `.`, not starting with a dot")
    return line


def vocabulary(path: Path) -> int:
    """Number of rows of the embedding of a policy folder's model: ids at or above it are no ids."""
    return int(AutoConfig.from_pretrained(path).vocab_size)
