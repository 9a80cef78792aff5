"""The normal form of text."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.contamination.normalise import symbols, text_digest, words, words_digest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello,  World!", ["hello", "world"]),
        ("has_close_elements(1.5)", ["has", "close", "elements", "1", "5"]),
        ("Ｆｕｌｌ ｗｉｄｔｈ １２", ["full", "width", "12"]),  # NFKC
        ("Straße ﬁle", ["strasse", "file"]),  # case folding, a ligature
        ("zero\u200bwidth soft\u00adhyphen", ["zerowidth", "softhyphen"]),
        ("“quoted” — dash…", ["quoted", "dash"]),
        ("… !? —", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(alphabet="abcXYZ ,.\n", min_size=1, max_size=200), st.integers(10, 60))
def test_wrapping_and_case_change_nothing(text: str, width: int) -> None:
    wrapped = textwrap.fill(text, width=width, break_long_words=False, break_on_hyphens=False).upper()
    assert words(wrapped) == words(text)
    assert words_digest(wrapped) == words_digest(text)


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = words(text)
    assert words(" ".join(once)) == once


def test_texts_without_words_have_no_digest_in_common() -> None:
    assert words_digest("!!!") is None
    assert words_digest("") is None


def test_text_digest_keeps_what_makes_two_tasks_two() -> None:
    assert text_digest("if a < b:\r\n    go()  \n") == text_digest("\nif a < b:\n    go()")
    assert text_digest("if a < b:\n    go()") != text_digest("if a <= b:\n    go()")
    assert text_digest("if a < b:\n    go()") != text_digest("if a < b:\ngo()")
    assert text_digest("rm A") != text_digest("rm a")


def test_symbols_keep_case_and_punctuation() -> None:
    assert symbols("a <= B_1") == ["a", "<", "=", "B_1"]
