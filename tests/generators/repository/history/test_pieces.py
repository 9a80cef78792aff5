"""Pieces of a change, put together and taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.core.blobs import MemoryBlobs
from factory.core.errors import GeneratorError
from factory.core.files import FileTree
from generators.repository.history.pieces import FileChange, Piece, changed_count, file_changes, pieces_of, texts
from generators.repository.projects import Project

TEXTS = st.none() | st.lists(st.sampled_from(["a", "b", "  c", "", "d = 1\r"]), max_size=30).map("\n".join)
LONG = [f"line {number}" for number in range(40)]


@given(TEXTS, TEXTS)
def test_all_pieces_give_the_old_file_and_none_the_new_one(before: str | None, after: str | None) -> None:
    change = FileChange("a.py", before, after)
    assert change.reverted(range(change.pieces)) == before
    assert change.reverted([]) == after


def test_one_piece_takes_back_its_own_lines_only() -> None:
    after = [*LONG]
    after[5], after[30:31] = "changed", ["two", "lines"]
    change = FileChange("a.py", "\n".join(LONG), "\n".join(after))
    assert change.pieces == 2
    first, second = [*after], [*after]
    first[5] = LONG[5]
    second[30:32] = [LONG[30]]
    assert change.reverted([0]) == "\n".join(first)
    assert change.reverted([1]) == "\n".join(second)


def test_differences_near_each_other_are_one_piece() -> None:
    after = [*LONG]
    after[5], after[9] = "changed", "changed too"
    assert FileChange("a.py", "\n".join(LONG), "\n".join(after)).pieces == 1


def test_a_change_of_many_pieces_is_looked_at_file_by_file() -> None:
    after = [line + "!" if number % 10 == 0 else line for number, line in enumerate(LONG)]
    files = {
        "a.py": FileChange("a.py", "\n".join(LONG), "\n".join(after)),
        "b.py": FileChange("b.py", None, "new\n"),
    }
    assert pieces_of(files, 5) == [Piece("a.py", 0), Piece("a.py", 1), Piece("a.py", 2), Piece("a.py", 3), Piece("b.py", 0)]
    assert pieces_of(files, 4) == [Piece("a.py"), Piece("b.py")]
    assert texts(files, [Piece("a.py"), Piece("b.py", 0)]) == {"a.py": "\n".join(LONG), "b.py": None}


PROJECT = Project(name="p", version="1", sources=("p",), tests=("p/tests",), licence="MIT", folder="/p")


def test_only_sources_that_differ_are_changes() -> None:
    blobs = MemoryBlobs()
    old = FileTree.of(blobs, {"p/a.py": "1\n", "p/b.py": "2\n", "p/tests/t.py": "3\n", "p/gone.py": "4\n", "README": "5\n"})
    new = FileTree.of(blobs, {"p/a.py": "1\n", "p/b.py": "2!\n", "p/tests/t.py": "3!\n", "p/new.py": "6\n", "README": "5!\n"})
    assert file_changes(PROJECT, old, new, blobs) == {
        "p/b.py": FileChange("p/b.py", "2\n", "2!\n"),
        "p/gone.py": FileChange("p/gone.py", "4\n", None),
        "p/new.py": FileChange("p/new.py", None, "6\n"),
    }
    with pytest.raises(GeneratorError, match=r"p/a\.py is no UTF-8 text"):
        file_changes(PROJECT, FileTree.of(blobs, {"p/a.py": b"\xff"}), new, blobs)


def test_changed_lines_are_counted_whatever_they_begin_with() -> None:
    before, after = {"a.py": "x\ny\n--z\n", "b.py": None}, {"a.py": "x\nY\n", "b.py": "n\n"}
    assert changed_count(before, after) == 4  # y and --z out, Y and n in
