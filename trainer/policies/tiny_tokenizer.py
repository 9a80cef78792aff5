"""The tiny policy's tokenizer, trained here from texts of the demonstrators.

Names are two syllables and always become two tokens, one per syllable, whatever stands around them:
copying a name is then copying two tokens. Words that occur often enough are one token each, together
with the spaces that separate them from names; everything else falls back to bytes, so that any text
can be encoded and decoded back. There are no merges: nothing is learned about the inside of words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from factory.agent.formats.tiny import SPECIALS


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """What becomes a token."""

    syllables: tuple[str, ...]
    """Names are two of these, with no letter before or after."""
    reserved: tuple[str, ...] = ()
    """Words that have the form of a name and are none."""
    words: int = 256
    """Most words that become tokens of their own."""
    least: int = 8
    """Occurrences in the training texts that a word needs for that."""


def train_tokenizer(texts: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """Count the words of `texts` and build the tokenizer; equal texts in any order give an equal tokenizer.

    Ids: special tokens, 256 bytes, syllables, then words from the most frequent on.
    """
    splitter = pre_tokenizer(config.syllables, config.reserved)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(piece for piece, _ in splitter.pre_tokenize_str(text))
    symbols = [*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet()), *config.syllables]
    known = set(symbols)
    frequent = sorted((-count, piece) for piece, count in counts.items() if count >= config.least and piece not in known)
    symbols += [piece for _, piece in frequent[: config.words]]
    vocabulary = {symbol: number for number, symbol in enumerate(dict.fromkeys(symbols))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    return tokenizer


def pre_tokenizer(syllables: Sequence[str], reserved: Sequence[str]) -> pre_tokenizers.PreTokenizer:
    """Split text into syllables of names, words and signs with the space around them, digits, and other white space."""
    steps = []
    if syllables:
        one = f"(?:{_any_of(syllables)})"
        excluded = f"(?!(?:{_any_of(reserved)})(?![A-Za-z]))" if reserved else ""
        steps = [
            pre_tokenizers.Split(Regex(rf"(?<![A-Za-z]){excluded}{one}{{2}}(?![A-Za-z])"), "isolated"),
            pre_tokenizers.Split(Regex(rf"\A{excluded}{one}(?={one}\z)"), "isolated"),
        ]
    rest = Regex(r" ?[A-Za-z]+ ?|[0-9]| ?[^A-Za-z0-9\s]+ ?|\s")
    steps.append(pre_tokenizers.Split(rest, "isolated"))
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _any_of(words: Sequence[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words))
