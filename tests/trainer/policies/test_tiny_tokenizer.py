from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from factory.agent.formats.tiny import SPECIALS, load_tokenizer
from trainer.policies.tiny_tokenizer import TokenizerConfig, train_tokenizer

SYLLABLES = ("ka", "lo", "mi", "fi", "le")
CONFIG = TokenizerConfig(syllables=SYLLABLES, reserved=("file", "mile"), least=2)
TEXTS = ["copy the file kalo to milo", "rename the file kami to lolo and then copy mika to loka", "cp kalo milo", "mv 3 kami"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    train_tokenizer(TEXTS, CONFIG).save(str(file))
    return load_tokenizer(file)


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return tokenizer.encode(text, add_special_tokens=False).tokens


def test_words_and_syllables_are_single_tokens(tokenizer: Tokenizer) -> None:
    assert pieces(tokenizer, "copy the file kalo to milo") == ["copyĠ", "theĠ", "fileĠ", "ka", "lo", "ĠtoĠ", "mi", "lo"]


@given(
    name=st.sampled_from(
        [first + second for first in SYLLABLES for second in SYLLABLES if first + second not in CONFIG.reserved]
    ),
    before=st.text().filter(lambda text: not text[-1:].isascii() or not text[-1:].isalpha()),
    after=st.text().filter(lambda text: not text[:1].isascii() or not text[:1].isalpha()),
)
def test_a_name_is_two_tokens_in_any_surroundings(tokenizer: Tokenizer, name: str, before: str, after: str) -> None:
    encoding = tokenizer.encode(before + name + after, add_special_tokens=False)
    inside = [
        token
        for token, (begin, end) in zip(encoding.tokens, encoding.offsets, strict=True)
        if begin < len(before) + len(name) and end > len(before)
    ]
    assert inside == [name[:2], name[2:]]


@given(st.text() | st.lists(st.sampled_from([*SPECIALS, *TEXTS, " ", "\n", "ka", "é", "\0"])).map("".join))
def test_text_comes_back_and_never_holds_a_special_token(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert all(tokenizer.id_to_token(token) not in SPECIALS for token in ids)


@given(st.permutations(TEXTS))
def test_the_order_of_texts_does_not_matter(texts: list[str]) -> None:
    assert train_tokenizer(texts, CONFIG).to_str() == train_tokenizer(TEXTS, CONFIG).to_str()


def test_rare_words_stay_bytes_and_the_most_frequent_come_first() -> None:
    first = len(SPECIALS) + 256 + len(SYLLABLES)
    made = train_tokenizer(TEXTS, CONFIG)
    words = [made.id_to_token(number) for number in range(first, made.get_vocab_size())]
    assert words == ["ĠtoĠ", "copyĠ", "fileĠ", "theĠ"]  # 3, 2, 2 and 2 times; all others once
    few = train_tokenizer(TEXTS, TokenizerConfig(syllables=SYLLABLES, reserved=CONFIG.reserved, least=2, words=1))
    assert [few.id_to_token(number) for number in range(first, few.get_vocab_size())] == ["ĠtoĠ"]


def test_saved_tokenizer_is_loaded_with_special_tokens_off(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    made = train_tokenizer(TEXTS, CONFIG)
    made.save(str(file))
    assert made.encode("<end>").ids == [made.token_to_id("<end>")]
    assert len(load_tokenizer(file).encode("<end>").ids) > 1
