import copy

import pytest
import torch

from factory.core.errors import UserError
from trainer.warmstart.optimisers import Muon, Optimiser, OptimiserConfig, orthogonalise


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(64, 64), (192, 64), (64, 192), (7, 5)])
def test_orthogonalise_keeps_singular_vectors_and_levels_singular_values(shape: tuple[int, int]) -> None:
    matrix = normal(*shape)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    inside = left.T @ orthogonalise(matrix) @ right.T
    levels = inside.diagonal()
    assert (inside - torch.diag(levels)).abs().max() < 1e-4
    kept = values / matrix.norm() > 0.01  # five iterations lift what is at least that large
    assert levels[kept].min() > 0.65
    assert levels.max() < 1.25


def test_orthogonalise_ignores_scale_and_treats_stacks_one_by_one() -> None:
    stack = normal(3, 8, 4)
    result = orthogonalise(stack)
    for matrix, found in zip(stack, result, strict=True):
        torch.testing.assert_close(orthogonalise(matrix * 1000), found, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(orthogonalise(matrix.T), found.T, rtol=1e-4, atol=1e-5)


def test_muon_moves_against_the_orthogonal_part_of_the_gradient() -> None:
    parameter = torch.nn.Parameter(torch.zeros(16, 4))
    parameter.grad = normal(16, 4)
    left, _, right = torch.linalg.svd(parameter.grad, full_matrices=False)
    Muon([parameter], lr=0.1, momentum=0.95, weight_decay=0.0).step()
    along = (left.T @ -parameter.detach() @ right.T).diagonal()
    # sqrt(16 / 4) x 0.1, up to the spread of the levels
    assert (along > 0.2 * 0.65).all()
    assert (along < 0.2 * 1.25).all()


def test_muon_decays_weights_apart_from_the_update() -> None:
    first, second = torch.nn.Parameter(torch.ones(4, 4)), torch.nn.Parameter(torch.ones(4, 4))
    for parameter, decay in ((first, 0.0), (second, 0.5)):
        parameter.grad = normal(4, 4)
        Muon([parameter], lr=0.1, momentum=0.9, weight_decay=decay).step()
    torch.testing.assert_close(second, first - 0.05)


def small_network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 6))


def train(model: torch.nn.Module, optimiser: Optimiser, steps: range) -> None:
    for step in steps:
        (model(normal(4, 6, seed=step)) ** 2).sum().backward()
        optimiser.step(step)


@pytest.mark.parametrize("kind", ["muon", "adamw"])
def test_restored_optimiser_goes_on_bit_for_bit(kind: str) -> None:
    config = OptimiserConfig(kind=kind, warmup_steps=4, decay_steps=20)  # type: ignore[arg-type]
    model = small_network()
    optimiser = Optimiser(model, config)
    train(model, optimiser, range(5))
    second = copy.deepcopy(model)
    again = Optimiser(second, config)
    again.restore({name: tensor.clone() for name, tensor in optimiser.tensors().items()})
    train(model, optimiser, range(5, 9))
    train(second, again, range(5, 9))
    for left, right in zip(model.parameters(), second.parameters(), strict=True):
        assert torch.equal(left, right)


def test_adamw_alone_is_torchs_own() -> None:
    ours, theirs = small_network(), small_network()
    optimiser = Optimiser(ours, OptimiserConfig(kind="adamw", warmup_steps=0, learning_rate=1e-2, max_grad_norm=1e9))
    reference = torch.optim.AdamW(theirs.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.0)
    train(ours, optimiser, range(4))
    for step in range(4):
        (theirs(normal(4, 6, seed=step)) ** 2).sum().backward()
        reference.step()
        reference.zero_grad()
    for left, right in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6)


def test_rates_rise_and_fall_linearly() -> None:
    config = OptimiserConfig(warmup_steps=4, decay_steps=8)
    assert [config.scale(step) for step in (0, 1, 3, 4, 6, 8, 9)] == [0.25, 0.4375, 0.625, 0.5, 0.25, 0.0, 0.0]
    assert OptimiserConfig(warmup_steps=0).scale(10_000) == 1.0


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="muon or adamw"):
        OptimiserConfig(kind="sgd")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="learning_rate"):
        OptimiserConfig(learning_rate=0)
