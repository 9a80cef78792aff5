"""File trees: hostile names, canonical manifests."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.blobs import MemoryBlobs
from factory.core.errors import NotFound
from factory.core.files import Entry, EntryKind, FileTree, check_path

PARTS = st.text(min_size=1, max_size=8).filter(lambda part: part not in (".", "..") and "/" not in part and "\0" not in part)
"""Any name that a file system takes, undecodable bytes (surrogates) included."""
SURROGATES = st.text(
    alphabet=st.characters(categories=["Cs"], min_codepoint=0xDC80, max_codepoint=0xDCFF), min_size=1, max_size=4
)
PATHS = st.lists(PARTS | SURROGATES, min_size=1, max_size=4).map("/".join)
ENTRIES = st.one_of(
    st.builds(
        Entry,
        st.just(EntryKind.FILE),
        st.text("0123456789abcdef", min_size=64, max_size=64),
        st.integers(0, 2**40),
        st.booleans(),
    ),
    st.just(Entry(EntryKind.DIRECTORY)),
    st.just(Entry(EntryKind.SPECIAL)),
    st.builds(lambda target: Entry(EntryKind.LINK, target=target), PATHS | st.just("../../etc/passwd") | st.just("/")),
)
TREES = st.dictionaries(PATHS, ENTRIES, max_size=8)


@given(TREES)
def test_a_tree_survives_its_manifest(entries: dict[str, Entry]) -> None:
    blobs, tree = MemoryBlobs(), FileTree(entries)
    assert FileTree.load(blobs, tree.save(blobs)) == tree
    assert FileTree.from_manifest(json.loads(json.dumps(tree.manifest()))) == tree
    assert dict(tree) == entries and list(tree) == sorted(entries)


@given(TREES, st.randoms())
def test_the_order_of_entries_is_nothing(entries: dict[str, Entry], rng: object) -> None:
    shuffled = list(entries.items())
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert FileTree(dict(shuffled)).digest == FileTree(entries).digest
    assert hash(FileTree(dict(shuffled))) == hash(FileTree(entries))


@given(TREES, TREES)
def test_different_trees_have_different_digests(left: dict[str, Entry], right: dict[str, Entry]) -> None:
    assert (FileTree(left).digest == FileTree(right).digest) == (left == right)


def test_names_are_kept_byte_for_byte() -> None:
    """Two Unicode forms of one name are two files; a manifest that normalised them would lose one."""
    composed, decomposed = "é.txt", unicodedata.normalize("NFD", "é.txt")
    entry = Entry(EntryKind.DIRECTORY)
    assert len(FileTree({composed: entry, decomposed: entry})) == 2
    assert FileTree({composed: entry}).digest != FileTree({decomposed: entry}).digest
    assert FileTree({"a\r\nb": entry}).digest != FileTree({"a\nb": entry}).digest


@pytest.mark.parametrize("path", ["", "/", "/etc/passwd", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\0b", "a/.."])
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="plain relative path"):
        check_path(path)
    with pytest.raises(ValueError, match="plain relative path"):
        FileTree({path: Entry(EntryKind.DIRECTORY)})


@pytest.mark.parametrize("path", ["a", "...", "..a", "a b", "-rf", "~", "a\\b", "a\nb", "\udcff", "𝔘/ü"])
def test_paths_that_are_strange_and_fine(path: str) -> None:
    assert check_path(path) == path


def test_contents_links_and_modes_count() -> None:
    file = Entry(EntryKind.FILE, "a" * 64, 3)
    changed = [
        file,
        Entry(EntryKind.FILE, "b" * 64, 3),
        Entry(EntryKind.FILE, "a" * 64, 4),
        Entry(EntryKind.FILE, "a" * 64, 3, executable=True),
        Entry(EntryKind.LINK, target="x"),
        Entry(EntryKind.LINK, target="y"),
        Entry(EntryKind.DIRECTORY),
        Entry(EntryKind.SPECIAL),
    ]
    assert len({FileTree({"a": entry}).digest for entry in changed}) == len(changed)


def test_trees_from_contents() -> None:
    blobs = MemoryBlobs()
    tree = FileTree.of(blobs, {"a.sh": "é\r\n", "d/b": b"\xff"}, executable=frozenset({"a.sh"}))
    assert tree.read(blobs, "a.sh") == b"\xc3\xa9\r\n" and tree["a.sh"].size == 4 and tree["a.sh"].executable
    assert tree.read(blobs, "d/b") == b"\xff" and not tree["d/b"].executable
    over = tree.merged({"d/b": Entry(EntryKind.LINK, target="../a.sh"), "c": Entry(EntryKind.DIRECTORY)})
    assert over["d/b"].target == "../a.sh" and len(over) == 3 and len(tree) == 2
    assert over.without("c", "a.sh", "nowhere").keys() == {"d/b"}
    for path in ("c", "d/b", "nowhere"):
        with pytest.raises(KeyError):
            over.read(blobs, path)


def test_an_unknown_tree_is_not_found() -> None:
    with pytest.raises(NotFound):
        FileTree.load(MemoryBlobs(), "0" * 64)
    assert FileTree() != {} and FileTree() == FileTree({})
