"""What is found in files: packed, compiled, or written in another notation."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import marshal
import tarfile
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters import readings as module
from filters.readings import is_bytecode, readings

TEXT = b"def total(items):\n    return sum(items)\n"


def zipped(name: str = "shop/cart.py", data: bytes = TEXT) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return file.getvalue()


def tarred(name: str = "shop/cart.py", data: bytes = TEXT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def lines(data: bytes) -> list[bytes]:
    return [line.strip() for line in data.split(b"\n") if line.strip()]


def holds(path: str, data: bytes) -> bool:
    """Whether one of a file's readings has the text's lines one after another."""
    wanted = lines(TEXT)
    found = [lines(one.data) for one in readings(path, data)]
    return any(have[start : start + 2] == wanted for have in found for start in range(len(have)))


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("a.py", TEXT),
        ("shop.whl", zipped()),
        ("body", b"cc=4,\x82\xa4meta" + zipped()),
        ("a.tar", tarred()),
        ("a.tar.gz", gzip.compress(tarred())),
        ("a.bin", bz2.compress(TEXT)),
        ("a.xz", lzma.compress(zipped())),
        ("objects/ab/cd", zlib.compress(b"blob 43\0" + TEXT)),
        ("object", zlib.compress(b"blob 43\0" + TEXT, 1)),
        ("nested.zip", zipped("inner.tar.gz", gzip.compress(tarred()))),
        ("wide.txt", TEXT.decode().encode("utf-16")),
        ("a.ipynb", json.dumps({"cells": [{"source": TEXT.decode().splitlines(keepends=True)}]}).encode()),
        ("a.json", json.dumps({"code": TEXT.decode()}).encode()),
        ("a.html", b"<pre><span>def</span> <b>total</b>(items):\n    return <i>sum</i>(items)\n</pre>"),
        ("fix.patch", b"@@ -1,2 +1,2 @@\n def total(items):\n-    return 0\n+    return sum(items)\n"),
        ("bug.patch", b"@@ -1,2 +1,2 @@\n def total(items):\n-    return sum(items)\n+    return 0\n"),
        ("strings.py", b"x = " + repr(TEXT.decode()).encode()),
    ],
)
def test_the_text_is_found(path: str, data: bytes) -> None:
    assert holds(path, data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PACK\0\0\0\2....", "not opened"),
        (b"# v2 git bundle\n1 refs/heads/a\n", "not opened"),
        (b"7z\xbc\xaf\x27\x1c0000", "not opened"),
        (b"PK\x03\x04 and nothing", "can not be opened"),
        (gzip.compress(TEXT)[:-9], "can not be opened"),
    ],
)
def test_what_can_not_be_opened_is_said_so(data: bytes, why: str) -> None:
    [closed] = [one.closed for one in readings("a", data) if one.closed]
    assert why in closed


def test_bombs_and_boxes_in_boxes_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNPACKED_BYTES", 1 << 20)
    for bomb in (gzip.compress(bytes(2 << 20)), zlib.compress(bytes(2 << 20)), zipped("a", bytes(2 << 20))):
        assert any("1 MiB" in one.closed for one in readings("a", bomb))
    deep = TEXT
    for _ in range(6):
        deep = gzip.compress(deep)
    assert any("more than 4 times" in one.closed for one in readings("a", deep))


def test_bytecode_is_told_by_its_content() -> None:
    code = compile(TEXT, "a.py", "exec")
    header = b"\xa7\r\r\n" + bytes(12)
    assert is_bytecode(header + marshal.dumps(code))
    assert is_bytecode(header + marshal.dumps(code, 2))
    assert not is_bytecode(TEXT)
    assert not is_bytecode(b"")


@settings(deadline=None)
@given(st.binary(max_size=400), st.sampled_from(["a", "a.html", "a.json", "a.py", "a.zip"]))
def test_any_bytes_are_read_first_as_they_are(data: bytes, path: str) -> None:
    assert readings(path, data)[0].data == data


@settings(deadline=None)
@given(
    st.sampled_from([b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0", b"\x78\x9c"]), st.binary(max_size=200)
)
def test_damaged_archives_never_raise(magic: bytes, data: bytes) -> None:
    assert readings("a", magic + data)
