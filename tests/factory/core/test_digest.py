"""Canonical bytes and digests."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.digest import canonical_bytes, canonical_text, digest_bytes, digest_of, is_digest

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def distinct_keys(value: Any) -> bool:
    """Whether no object of `value` has two keys of one canonical form."""
    if isinstance(value, dict):
        return len({canonical_text(key) for key in value}) == len(value) and all(map(distinct_keys, value.values()))
    return all(map(distinct_keys, value)) if isinstance(value, list) else True


def reordered(value: Any) -> Any:
    """The same value, every mapping in reverse order and every list a tuple."""
    if isinstance(value, dict):
        return MappingProxyType({key: reordered(value[key]) for key in reversed(value)})
    return tuple(map(reordered, value)) if isinstance(value, list) else value


def test_by_hand() -> None:
    value = {"b": [1, True, None], "a": "e\u0301\r\nx\ry", "Z": -5, "é": {}}
    assert canonical_bytes(value) == '{"Z":-5,"a":"é\\nx\\ny","b":[1,true,null],"é":{}}'.encode()


def test_known_digests() -> None:
    """SHA-256 of `{}` and of no bytes at all (FIPS 180-4 examples and any implementation)."""
    assert digest_of({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert digest_bytes(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_bytes(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@given(VALUES.filter(distinct_keys))
def test_order_and_container_types_do_not_matter(value: Any) -> None:
    assert canonical_bytes(reordered(value)) == canonical_bytes(value)


@given(VALUES.filter(distinct_keys))
def test_canonical_bytes_are_a_fixed_point(value: Any) -> None:
    data = canonical_bytes(value)
    assert canonical_bytes(json.loads(data)) == data
    assert unicodedata.is_normalized("NFC", data.decode()) and b"\r" not in data
    assert digest_of(value) == hashlib.sha256(data).hexdigest()


@given(VALUES.filter(distinct_keys), VALUES.filter(distinct_keys))
def test_equal_digests_mean_equal_values(left: Any, right: Any) -> None:
    assert (digest_of(left) == digest_of(right)) == (canonical_bytes(left) == canonical_bytes(right))


@given(TEXT)
def test_unicode_forms_of_a_text_are_one(text: str) -> None:
    assert canonical_bytes(unicodedata.normalize("NFD", text)) == canonical_bytes(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(("left", "right"), [(1, True), (0, False), (1, "1"), (None, "null"), ([], {}), ([[]], []), ("", None)])
def test_types_are_kept_apart(left: Any, right: Any) -> None:
    assert digest_of(left) != digest_of(right)


@pytest.mark.parametrize("value", [1.0, float("nan"), b"x", {1: "a"}, {None: 1}, {True: 1}, {"a": {1, 2}}, object(), [[1.5]]])
def test_what_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_bytes(value)


def test_keys_that_become_one_are_refused() -> None:
    with pytest.raises(ValueError, match="canonical form"):
        canonical_bytes({"é": 1, "e\u0301": 2})
    with pytest.raises(ValueError, match="canonical form"):
        canonical_bytes({"a\r\n": 1, "a\n": 2})


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        canonical_bytes("\ud800")


def test_integers_and_strings_of_other_classes_are_plain() -> None:
    class Number(int):
        def __repr__(self) -> str:
            return "seven"

    class Text(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "other"

    assert canonical_bytes(Number(7)) == b"7"
    assert canonical_bytes({"a": 10**40}) == b'{"a":1' + b"0" * 40 + b"}"
    mapping: Mapping[str, int] = MappingProxyType({"a": 1})
    assert canonical_bytes(mapping) == b'{"a":1}'


@pytest.mark.parametrize("environment", [{"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_another_process_gives_the_same_digest(environment: dict[str, str], tmp_path: Any) -> None:
    value = {"ß": ["é", {"x": 1, "a": [True, None]}], "set": sorted({"b", "a"})}
    code = "import json,sys; from factory.core.digest import digest_of; print(digest_of(json.loads(sys.argv[1])))"
    command = [sys.executable, "-c", code, json.dumps(value)]
    search = os.pathsep.join(path for path in sys.path if path)
    found = subprocess.run(
        command, capture_output=True, check=True, cwd=tmp_path, env={"PYTHONPATH": search, "TZ": "Asia/Tokyo", **environment}
    )
    assert found.stdout.decode().strip() == digest_of(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a" * 64, True), ("A" * 64, False), ("a" * 63, False), ("g" * 64, False), ("", False), ("a" * 64 + "\n", False)],
)
def test_the_form_of_a_digest(text: str, expected: bool) -> None:
    assert is_digest(text) is expected
