import pytest
import torch

from factory.agent.formats import load_format
from factory.agent.formats.tiny import TinyFormat
from factory.core.errors import UserError
from factory.core.trajectory import Owner
from tests.trainer.warmstart.errands import Errands, errand_policy, errand_source
from trainer.warmstart.demonstrations import Series, batches, collate


@pytest.fixture(scope="module")
def format(tmp_path_factory: pytest.TempPathFactory) -> TinyFormat:
    found = load_format(errand_policy(tmp_path_factory.mktemp("policies")))
    assert isinstance(found, TinyFormat)
    return found


def series(format: TinyFormat, *demonstrators: Errands, seed: int = 0, size: int = 64, longest: int = 512) -> Series:
    return Series(
        [errand_source(item) for item in demonstrators], format, seed=seed, purpose="test", size=size, longest=longest
    )


def test_an_example_is_what_a_rollout_would_have_recorded(format: TinyFormat) -> None:
    item = series(format, Errands(depth=1, observation="ok <end>"), size=1).shard(0)[0]
    names = [format.tokenizer.id_to_token(token) for token in item.tokens.ids]
    call, submit = names.index("<call:bash>"), names.index("<call:submit>")
    assert names[0] == "<begin>"
    assert names[call - 1] == "<instructed>"
    assert names[-2:] == ["<call:submit>", "<end>"]
    first_end = names.index("<end>")
    assert names[first_end + 1] == "<observed>"
    assert names[submit - 1] == "</observed>"
    own = [owner is Owner.ACTION for owner in item.tokens.owners]
    expected = [call <= place <= first_end or place >= submit for place in range(len(names))]
    assert own == expected
    assert names.count("<end>") == 2  # the one in the observation is text


def test_shards_follow_from_the_seed(format: TinyFormat) -> None:
    def drawn(seed: int, shard: int) -> list[tuple[int, ...]]:
        return [item.tokens.ids for item in series(format, Errands(), seed=seed).shard(shard)]

    assert drawn(0, 1) == drawn(0, 1)
    assert len({tuple(drawn(seed, shard)) for seed, shard in ((0, 0), (0, 1), (1, 0), (1, 1))}) == 4


def test_shares_split_a_shard(format: TinyFormat) -> None:
    sources = [errand_source(Errands(depth=1)), errand_source(Errands(depth=2))]
    uneven = [type(source)(**{**vars(source), "share": share}) for source, share in zip(sources, (1.0, 3.0), strict=True)]
    shard = Series(uneven, format, seed=0, purpose="test", size=40, longest=512).shard(0)
    assert [sum(item.source == number for item in shard) for number in (0, 1)] == [10, 30]
    assert {item.depth for item in shard if item.source == 1} == {2}
    assert [item.source for item in shard] != sorted(item.source for item in shard)


def test_what_is_too_long_is_left_out(format: TinyFormat) -> None:
    both = series(format, Errands(depth=1), Errands(depth=4), longest=40).shard(0)
    assert {item.depth for item in both} == {1}
    with pytest.raises(UserError, match="longest"):
        series(format, Errands(depth=4), longest=10).shard(0)
    with pytest.raises(UserError, match="sources"):
        Series([], format, seed=0, purpose="test", size=4, longest=100)


def test_weights_follow_provenance_and_padding_has_none(format: TinyFormat) -> None:
    examples = series(format, Errands(depth=1), Errands(depth=3), size=2).shard(0)
    batch = collate(examples, prompt_weight=0.25, pad=0)
    assert batch.ids.shape == (2, max(map(len, examples)))
    assert batch.weights.shape == (2, batch.ids.shape[1] - 1)
    for row, item in enumerate(examples):
        expected = [1.0 if owner is Owner.ACTION else 0.25 for owner in item.tokens.owners[1:]]
        assert batch.weights[row, : len(expected)].tolist() == expected
        assert batch.weights[row, len(expected) :].eq(0).all()


def test_batches_are_whole_and_of_like_length(format: TinyFormat) -> None:
    examples = series(format, Errands(depth=1), Errands(depth=2), Errands(depth=3), size=300).shard(0)
    made = batches(examples, 16, prompt_weight=1.0, pad=0)
    assert len(made) == 18
    assert all(batch.ids.shape[0] == 16 for batch in made)
    real = sum(int((batch.weights > 0).sum()) for batch in made)
    assert real / sum(batch.weights.numel() for batch in made) > 0.9
    rows = [
        tuple(row[: int((weights > 0).sum()) + 1].tolist())
        for batch in made
        for row, weights in zip(*vars(batch).values(), strict=True)
    ]
    assert len(rows) == 288
    known = [item.tokens.ids for item in examples]
    assert all(known.count(row) >= rows.count(row) for row in set(rows))
    assert not torch.equal(made[0].ids[0], made[1].ids[0])
