import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from factory.core.errors import PolicyError, UserError
from trainer.policies.storage import (
    import_model,
    latest_version,
    load_model,
    load_record,
    load_version,
    save_policy,
    weights_digest,
)


def small_model(tied: bool = True, seed: int = 0) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=17,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            intermediate_size=16,
            tie_word_embeddings=tied,
        )
    )


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    file = tmp_path / "source" / "tokenizer.json"
    file.parent.mkdir()
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "hello": 1, "world": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(file))
    return file


def save(model: LlamaForCausalLM, root: Path, tokenizer_file: Path, step: int = 0) -> Path:
    return save_policy(model, root=root, line="small", step=step, parent=None, format="tiny", tokenizer_file=tokenizer_file)[1]


def test_digest_is_sha256_of_name_dtype_shape_and_bytes() -> None:
    # printf '["w","float32",[2]]\n\x00\x00\x80\x3f\x00\x00\x00\x40' | sha256sum
    expected = "28246d2dccb80cd15d11b1ed82d323e1eecdb09437a86f1d8a61802c4534b864"
    assert weights_digest({"w": torch.tensor([1.0, 2.0])}) == expected


@given(st.permutations(["a", "b.c", "b", "d"]))
def test_digest_does_not_depend_on_order(names: list[str]) -> None:
    values = {"a": torch.ones(2, 3), "b.c": torch.zeros(4), "b": torch.arange(3), "d": torch.tensor(1.5)}
    assert weights_digest({name: values[name] for name in names}) == weights_digest(values)


@pytest.mark.parametrize(
    "other",
    [
        {"v": torch.ones(2, 3)},
        {"w": torch.ones(3, 2)},
        {"w": torch.ones(2, 3, dtype=torch.float64)},
        {"w": torch.ones(2, 3).bfloat16()},
        {"w": torch.tensor([[1.0, 1, 1], [1, 1, 1.0000001]])},
        {"w": torch.ones(2, 3), "x": torch.ones(0)},
    ],
)
def test_digest_tells_contents_apart(other: dict[str, torch.Tensor]) -> None:
    assert weights_digest(other) != weights_digest({"w": torch.ones(2, 3)})


def test_digest_ignores_strides() -> None:
    assert weights_digest({"w": torch.arange(6).reshape(3, 2).T}) == weights_digest({"w": torch.tensor([[0, 2, 4], [1, 3, 5]])})


@pytest.mark.parametrize("tied", [True, False])
def test_saved_folder_reads_back_equal(tied: bool, tmp_path: Path, tokenizer_file: Path) -> None:
    model = small_model(tied)
    folder = save(model, tmp_path, tokenizer_file, step=3)
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
        "policy.json",
        "tokenizer.json",
    ]
    assert ("lm_head.weight" in load_file(folder / "model.safetensors")) is not tied
    record = load_record(folder)
    assert (record.tied, record.step, record.line, folder.name) == (tied, 3, "small", weights_digest(model.state_dict()))
    again = load_model(folder)
    assert weights_digest(again.state_dict()) == load_version(folder).weights
    ids = torch.arange(9)[None]
    assert torch.equal(again(ids).logits, model(ids).logits)
    if tied:
        assert again.get_output_embeddings().weight is again.get_input_embeddings().weight


def test_tied_weights_count_once() -> None:
    model = small_model()
    state = model.state_dict()
    assert state["lm_head.weight"].data_ptr() == state["model.embed_tokens.weight"].data_ptr()
    assert weights_digest(state) == weights_digest({name: value for name, value in state.items() if name != "lm_head.weight"})
    assert weights_digest(state) != weights_digest({**state, "lm_head.weight": state["lm_head.weight"].clone()})


def test_known_weights_are_not_written_again(tmp_path: Path, tokenizer_file: Path) -> None:
    first = save(small_model(), tmp_path, tokenizer_file, step=1)
    written = (first / "model.safetensors").stat().st_mtime_ns
    assert save(small_model(), tmp_path, tokenizer_file, step=2) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == written
    assert load_version(first).step == 1


def test_a_failed_save_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        save(small_model(), tmp_path / "root", tmp_path)
    assert list((tmp_path / "root" / "small").iterdir()) == []


def test_changed_weights_are_refused(tmp_path: Path, tokenizer_file: Path) -> None:
    folder = save(small_model(), tmp_path, tokenizer_file)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"][0] += 1
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(PolicyError, match=r"policy\.json names"):
        load_model(folder)


def test_no_policy_folder_is_a_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"policy\.json"):
        load_version(tmp_path)
    with pytest.raises(UserError, match="line"):
        save_policy(
            small_model(),
            root=tmp_path,
            line="../up",
            step=0,
            parent=None,
            format="tiny",
            tokenizer_file=tmp_path / "tokenizer.json",
        )


def test_latest_version_has_the_most_steps(tmp_path: Path, tokenizer_file: Path) -> None:
    assert latest_version(tmp_path, "small") is None
    later = save(small_model(seed=1), tmp_path, tokenizer_file, step=9)
    save(small_model(seed=2), tmp_path, tokenizer_file, step=4)
    (tmp_path / "small" / ".saving-x").mkdir()
    assert latest_version(tmp_path, "small") == (load_version(later), later)


def chat_folder(folder: Path, tokenizer_file: Path, template: str | None) -> Path:
    small_model(seed=5).save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer_file), unk_token="[UNK]")
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return folder


def test_import_brings_a_local_model_with_its_chat_template(tmp_path: Path, tokenizer_file: Path) -> None:
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    source = chat_folder(tmp_path / "model", tokenizer_file, template)
    version, folder = import_model(str(source), "mine", root=tmp_path / "root")
    assert version.weights == weights_digest(small_model(seed=5).state_dict())
    assert load_record(folder).format == "chat"
    assert not (folder / "generation_config.json").exists()
    stored = (folder / "chat_template.jinja").read_text() if (folder / "chat_template.jinja").exists() else ""
    stored = stored or json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
    assert stored == template


def test_import_refuses_what_cannot_chat_or_load(tmp_path: Path, tokenizer_file: Path) -> None:
    with pytest.raises(UserError, match="chat template"):
        import_model(str(chat_folder(tmp_path / "model", tokenizer_file, None)), "mine", root=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="transformers can load"):
        import_model(str(tmp_path / "empty"), "mine", root=tmp_path)
