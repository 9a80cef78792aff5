import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from factory.core.errors import TrainingStopped, UserError
from tests.trainer.warmstart.errands import Errands, errand_policy, errand_source
from trainer.policies.storage import load_model, load_record, weights_digest
from trainer.warmstart.checkpoints import Measurement
from trainer.warmstart.config import WarmStartConfig
from trainer.warmstart.demonstrations import Batch, Example, Series, collate
from trainer.warmstart.training import WarmStart, loss_of, pass_rates, warm_start

CONFIG = WarmStartConfig(batch=8, shard=64, demonstrations=128, gate=1.0, gate_examples=8, gate_every=5, max_steps=12)
SOURCES = [errand_source(Errands(depth=1)), errand_source(Errands(depth=2))]


@pytest.fixture
def start(tmp_path: Path) -> Path:
    return errand_policy(tmp_path)


def examples(run: WarmStart) -> list[Example]:
    return run.gate[:4]


def test_positions_of_others_get_exactly_no_gradient(tmp_path: Path, start: Path) -> None:
    run = WarmStart(CONFIG, SOURCES, root=tmp_path, start=start)
    batch = collate(examples(run), prompt_weight=0.0, pad=run.pad)
    states = []
    hook = run.model.base_model.register_forward_hook(lambda module, inputs, output: states.append(output.last_hidden_state))
    loss = loss_of(run.model, batch)
    hook.remove()
    (gradient,) = torch.autograd.grad(loss, states)
    touched = gradient.abs().sum(-1) > 0
    # the state at t predicts token t + 1, so the last position predicts nothing
    assert torch.equal(touched[:, :-1], batch.weights > 0)
    assert not touched[:, -1].any()


@torch.no_grad()
def test_loss_is_the_weighted_mean_of_what_torch_says(tmp_path: Path, start: Path) -> None:
    run = WarmStart(CONFIG, SOURCES, root=tmp_path, start=start)
    items = examples(run)
    total = norm = 0.0
    for item in items:
        logits = run.model(torch.tensor([item.tokens.ids])).logits[0].double()
        for place in range(1, len(item)):
            weight = 1.0 if item.tokens.loss_mask()[place] else 0.3
            total -= weight * float(torch.log_softmax(logits[place - 1], -1)[item.tokens.ids[place]])
            norm += weight
    assert float(loss_of(run.model, collate(items, prompt_weight=0.3, pad=run.pad))) == pytest.approx(total / norm, rel=1e-5)


def test_padding_changes_nothing(tmp_path: Path, start: Path) -> None:
    run = WarmStart(CONFIG, SOURCES, root=tmp_path, start=start)
    batch = collate(examples(run), prompt_weight=0.05, pad=run.pad)
    rows = batch.ids.shape[0]
    wider = Batch(
        torch.cat([batch.ids, torch.full((rows, 9), 7)], dim=1), torch.cat([batch.weights, torch.zeros(rows, 9)], dim=1)
    )
    parameters = list(run.model.parameters())
    for left, right in zip(
        torch.autograd.grad(loss_of(run.model, batch), parameters),
        torch.autograd.grad(loss_of(run.model, wider), parameters),
        strict=True,
    ):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)


def test_pass_rate_is_the_chance_of_sampling_the_reference(tmp_path: Path) -> None:
    few = errand_source(Errands(depth=1, names=2))
    start = errand_policy(tmp_path)
    config = replace(CONFIG, max_steps=25, gate_every=100)
    run = WarmStart(config, [few], root=tmp_path, start=start)
    run.train()
    item = run.gate[0]
    (chance,) = pass_rates(run.model, [item], pad=run.pad)
    assert 0.02 < chance < 0.98
    draws = 3000
    generator = torch.Generator().manual_seed(0)
    ids = torch.tensor([item.tokens.ids]).expand(draws, -1)
    alive = torch.ones(draws, dtype=torch.bool)
    with torch.no_grad():
        probabilities = run.model(ids[:1]).logits[0].softmax(-1)
    for place, own in enumerate(item.tokens.loss_mask()):
        if own:
            sampled = torch.multinomial(probabilities[place - 1], draws, replacement=True, generator=generator)
            alive &= sampled == item.tokens.ids[place]
    assert float(alive.float().mean()) == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / draws))


def test_a_few_demonstrations_are_learnt_by_heart(tmp_path: Path, start: Path) -> None:
    seen: list[Measurement] = []
    config = replace(CONFIG, batch=16, gate=0.9, gate_every=10, max_steps=200, gate_examples=24)
    version, folder = warm_start(
        config, [errand_source(Errands(depth=1, names=3))], root=tmp_path, start=start, on_measurement=seen.append
    )
    assert seen[-1].pass_rate >= 0.9
    assert all(point.pass_rate < 0.9 for point in seen[:-1])
    assert seen[0].loss > seen[-1].loss
    assert version.step == seen[-1].step < 200
    assert load_record(folder).parent == load_record(start).weights
    items = Series(
        [errand_source(Errands(depth=1, names=3))],
        WarmStart(config, SOURCES, root=tmp_path, start=start).series.format,
        seed=9,
        purpose="other",
        size=10,
        longest=512,
    ).shard(0)
    assert sum(pass_rates(load_model(folder), items, pad=0)) / 10 > 0.8


@pytest.mark.parametrize("kind", ["muon", "adamw"])
def test_a_resumed_run_ends_with_equal_bits(kind: str, tmp_path: Path, start: Path) -> None:
    config = replace(CONFIG, optimiser=replace(CONFIG.optimiser, kind=kind))
    whole, _ = warm_start(config, SOURCES, root=tmp_path / "whole", start=start)
    # a kill after step 7 leaves the checkpoint of step 7
    cut = WarmStart(replace(config, max_steps=7), SOURCES, root=tmp_path / "cut", start=start)
    cut.train()
    resumed = WarmStart(config, SOURCES, root=tmp_path / "cut", start=start)
    assert resumed.progress.step == 7
    assert weights_digest(resumed.model.state_dict()) == weights_digest(cut.model.state_dict())
    resumed.train()
    assert resumed.save()[0] == whole
    points = [(point.step, point.pass_rate) for point in resumed.progress.curve]
    assert [step for step, _ in points] == [5, 10]


def test_an_ended_run_gives_the_same_version_without_training(tmp_path: Path, start: Path) -> None:
    first = warm_start(CONFIG, SOURCES, root=tmp_path, start=start)
    run = WarmStart(CONFIG, SOURCES, root=tmp_path, start=start)
    assert run.train().ended == "steps"
    assert run.save() == first


def test_a_loss_that_is_not_finite_never_reaches_the_weights(tmp_path: Path, start: Path) -> None:
    run = WarmStart(CONFIG, SOURCES, root=tmp_path, start=start)
    with torch.no_grad():
        run.model.get_parameter("model.norm.weight")[0] = math.inf
    before = [parameter.detach().clone() for parameter in run.model.parameters()]
    with pytest.raises(TrainingStopped, match="loss of step 0 of the warm start"):
        run.train()
    assert all(torch.equal(left, right) for left, right in zip(before, run.model.parameters(), strict=True))
    assert not run.file.exists()


def test_other_seeds_starts_and_demonstrations_are_other_runs(tmp_path: Path, start: Path) -> None:
    other_start = errand_policy(tmp_path, seed=1)
    versions = {
        warm_start(config, sources, root=tmp_path, start=begin)[0].weights
        for config, sources, begin in (
            (CONFIG, SOURCES, start),
            (replace(CONFIG, seed=1), SOURCES, start),
            (CONFIG, SOURCES, other_start),
            (CONFIG, SOURCES[::-1], start),
            (CONFIG, SOURCES[:1], start),
        )
    }
    assert len(versions) == 5


def test_the_global_generator_does_not_matter(tmp_path: Path, start: Path) -> None:
    results = set()
    for number in range(2):
        torch.manual_seed(number)
        results.add(warm_start(CONFIG, SOURCES, root=tmp_path / str(number), start=start)[0].weights)
    assert len(results) == 1


def test_a_budget_of_seconds_ends_it_below_the_gate(tmp_path: Path, start: Path) -> None:
    run = WarmStart(replace(CONFIG, max_seconds=1e-6), SOURCES, root=tmp_path, start=start)
    assert run.train().ended == "seconds"
    assert run.progress.step == 1


def test_a_checkpoint_is_whole_or_absent(tmp_path: Path, start: Path) -> None:
    run = WarmStart(CONFIG, SOURCES, root=tmp_path, start=start)
    run.train()
    assert [path.name for path in run.file.parent.iterdir()] == ["state.safetensors"]
    again = WarmStart(CONFIG, SOURCES, root=tmp_path, start=start)
    assert json.dumps([vars(point) for point in again.progress.curve]) == json.dumps(
        [vars(point) for point in run.progress.curve]
    )


@pytest.mark.parametrize(
    ("field", "value"), [("gate", 0.0), ("gate", 1.5), ("batch", 0), ("shard", 4), ("prompt_weight", 2.0), ("threads", 0)]
)
def test_mistakes_are_named(field: str, value: float) -> None:
    with pytest.raises(UserError, match=field):
        replace(CONFIG, **{field: value})
