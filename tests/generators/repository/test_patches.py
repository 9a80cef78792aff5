"""Patches of trees: what is made is applied again, and what does not fit is told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.core.blobs import MemoryBlobs
from factory.core.errors import GeneratorError
from factory.core.files import FileTree
from generators.repository.patches import applied, difference

BLOBS = MemoryBlobs()
CONTENT = st.lists(st.sampled_from(["a", "b", "  c", "", "d\r", "é ☃"]), max_size=6).map("\n".join) | st.binary(max_size=40)
PATHS = st.sampled_from(["a.py", "p/b.py", "p/q/c d.txt", "ümläut.py", "x'y.py"])
TREES = st.dictionaries(PATHS, CONTENT, max_size=4)


@settings(max_examples=25, deadline=None)
@given(TREES, TREES)
def test_a_difference_applied_gives_the_other_tree_and_back(one: dict[str, str | bytes], two: dict[str, str | bytes]) -> None:
    before, after = FileTree.of(BLOBS, one), FileTree.of(BLOBS, two)
    patch = difference(before, after, BLOBS)
    assert applied(before, patch, BLOBS) == after
    assert applied(after, patch, BLOBS, reverse=True) == before
    assert (patch == "") == (before == after)


def test_a_known_difference_in_gits_form() -> None:
    before = FileTree.of(BLOBS, {"p/a.py": "one\ntwo\nthree\n"})
    after = FileTree.of(BLOBS, {"p/a.py": "one\n2\nthree\n"})
    patch = difference(before, after, BLOBS)
    assert patch.splitlines()[0] == "diff --git a/p/a.py b/p/a.py"
    assert patch.splitlines()[2:] == ["--- a/p/a.py", "+++ b/p/a.py", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]


def test_the_executable_bit_is_part_of_a_difference() -> None:
    before = FileTree.of(BLOBS, {"run.sh": "true\n"})
    after = FileTree.of(BLOBS, {"run.sh": "true\n"}, executable=frozenset({"run.sh"}))
    assert applied(before, difference(before, after, BLOBS), BLOBS) == after


@pytest.mark.parametrize(
    "patch",
    [
        "--- a/p/a.py\n+++ b/p/a.py\n@@ -1 +1 @@\n-other\n+x\n",
        "--- a/absent.py\n+++ b/absent.py\n@@ -1 +1 @@\n-one\n+x\n",
        "--- /dev/null\n+++ b/../../outside.py\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b//etc/outside.py\n@@ -0,0 +1 @@\n+x\n",
        "no patch at all",
        "diff --git a/p/a.py b/p/a.py\n--- a/p/a.py\n+++ b/p/a.py\n@@ -1,9 +1,9 @@\n-one\n",
    ],
)
def test_a_patch_that_does_not_fit_is_told_in_one_line(patch: str) -> None:
    tree = FileTree.of(BLOBS, {"p/a.py": "one\n"})
    with pytest.raises(GeneratorError, match="the patch does not apply") as caught:
        applied(tree, patch, BLOBS)
    assert "\n" not in str(caught.value)


def test_a_link_that_a_patch_makes_is_not_followed() -> None:
    tree = FileTree.of(BLOBS, {"p/a.py": "one\n"})
    link = "diff --git a/p/l b/p/l\nnew file mode 120000\n--- /dev/null\n+++ b/p/l\n@@ -0,0 +1 @@\n+/etc/passwd\n"
    assert applied(tree, link, BLOBS) == tree


def test_an_empty_patch_changes_nothing() -> None:
    tree = FileTree.of(BLOBS, {"p/a.py": "one\n"})
    assert applied(tree, " \n", BLOBS) == tree
