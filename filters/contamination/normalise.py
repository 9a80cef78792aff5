"""One normal form for text, so that wrapping, case and punctuation hide nothing.

Version 1: Unicode NFKC, case folded, format characters (zero-width, soft hyphens, byte order marks) dropped; a
word is a run of letters and digits; everything else (white space, line breaks, punctuation, underscores) only
separates words.
"""

from __future__ import annotations

import re
import unicodedata

from factory.core.digest import Digest, canonical_text, digest_bytes

NORMALISER = 1
"""Version of the rules of this module; part of every index digest."""

_WORD = re.compile(r"[^\W_]+")
_SYMBOL = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """The normalised words of `text`, in order."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if not folded.isascii():
        folded = "".join(character for character in folded if unicodedata.category(character) != "Cf")
    return _WORD.findall(folded)


def symbols(text: str) -> list[str]:
    """Words and single punctuation marks, case kept: for near-duplicates, where `<` against `<=` is a difference."""
    return _SYMBOL.findall(canonical_text(text))


def words_digest(text: str) -> Digest | None:
    """SHA-256 of the normalised words; None when there are none (two wordless texts are not the same text)."""
    found = words(text)
    return digest_bytes(" ".join(found).encode()) if found else None


def text_digest(text: str) -> Digest:
    """SHA-256 of the text with NFC, LF, no trailing white space: case, punctuation and indentation count."""
    lines = [line.rstrip() for line in canonical_text(text).split("\n")]
    return digest_bytes("\n".join(lines).strip("\n").encode("utf-8", errors="backslashreplace"))
