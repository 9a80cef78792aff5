"""The canary on the real engine: it agrees after a sound sync, and sees each way in which a sync can be unsound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from factory.core.errors import StaleWeights, UserError
from trainer.canary import TOLERANCES, Canary, CanaryConfig
from trainer.weights import named_weights, repack_tied_head, sync_weights

from .support import VERSION, TorchClient, perturb, tiny_llama

TEMPERATURE = 0.7
FP32 = TOLERANCES["float32"]


def test_on_a_torch_sampler_a_skipped_sync_is_seen() -> None:
    model = tiny_llama()
    canary = Canary(CanaryConfig(length=16, scored=16), vocabulary=32, context=64)
    assert len(set(canary.sequences)) == 4
    sound, broken = TorchClient(model), TorchClient(model, broken="weights")
    assert canary.check(sound, model, temperature=TEMPERATURE, tolerance=FP32).tokens == 4 * (15 + 8)
    perturb(model, 1)
    for client in (sound, broken):
        sync_weights(model, client, VERSION)  # type: ignore[arg-type]
    canary.check(sound, model, temperature=TEMPERATURE, tolerance=FP32)
    with pytest.raises(StaleWeights, match="engine and learner disagree"):
        canary.check(broken, model, temperature=TEMPERATURE, tolerance=FP32)


def test_weights_that_are_not_numbers_are_seen() -> None:
    model = tiny_llama()
    client = TorchClient(model)
    with torch.no_grad():
        model.model.norm.weight[0] = float("nan")
    canary = Canary(CanaryConfig(length=16, scored=16), vocabulary=32, context=64)
    with pytest.raises(StaleWeights, match="inf nats"):
        canary.check(client, model, temperature=TEMPERATURE, tolerance=FP32)


@pytest.mark.parametrize("wrong", [{"sequences": 1}, {"length": 8}, {"scored": 1}])
def test_settings_are_checked(wrong: dict[str, int]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        CanaryConfig(**wrong)


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LlamaForCausalLM, object]]:
    from factory.agent.clients.local import LocalClient, LocalConfig

    model = tiny_llama(tied=request.param, vocabulary=96, layers=2, seed=4)
    folder: Path = tmp_path_factory.mktemp("policy")
    model.save_pretrained(folder)
    client = LocalClient(folder, VERSION, LocalConfig(max_context=256, kv_cache_gib=0.1))
    yield model, client
    client.close()


@pytest.mark.vllm
@pytest.mark.slow
def test_real_engine(engine: tuple[LlamaForCausalLM, object]) -> None:
    """One engine, many weights: agreement within 1e-4 nats before any update and after each sync; each fault is seen."""
    model, client = engine
    tied = model.config.tie_word_embeddings
    canary = Canary(CanaryConfig(), vocabulary=96, context=256)

    def check() -> float:
        return canary.check(client, model, temperature=TEMPERATURE, tolerance=FP32).largest  # type: ignore[arg-type]

    def reload() -> None:
        client.engine.collective_rpc("reload_weights", kwargs={"weights_iterator": named_weights(model)})  # type: ignore[attr-defined]

    assert check() < 1e-4
    for seed in range(3):
        canary.prime(client, temperature=TEMPERATURE)  # type: ignore[arg-type]
        perturb(model, seed)
        sync_weights(model, client, VERSION)  # type: ignore[arg-type]
        assert check() < 1e-4

    perturb(model, 10)  # no sync at all
    client.reset_prefix_cache()  # type: ignore[attr-defined]
    with pytest.raises(StaleWeights, match="disagree"):
        check()

    sync_weights(model, client, VERSION)  # type: ignore[arg-type]
    canary.prime(client, temperature=TEMPERATURE)  # type: ignore[arg-type]
    perturb(model, 11)  # weights and head are new, the cached keys and values are not
    reload()
    client.engine.apply_model(repack_tied_head)  # type: ignore[attr-defined]
    with pytest.raises(StaleWeights, match="disagree"):
        check()

    sync_weights(model, client, VERSION)  # type: ignore[arg-type]
    canary.prime(client, temperature=TEMPERATURE)  # type: ignore[arg-type]
    with pytest.raises(StaleWeights, match="cached prompt tokens"):
        check()  # equal weights, but nobody reset the cache

    perturb(model, 12)  # the packed copy of a tied head stays old; an untied head is reloaded with the rest
    reload()
    client.reset_prefix_cache()  # type: ignore[attr-defined]
    if tied:
        with pytest.raises(StaleWeights, match="disagree"):
            check()
    else:
        assert check() < 1e-4
