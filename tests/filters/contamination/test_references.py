"""Reference sets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from factory.core.errors import UserError
from filters.contamination.references import LocalReference, ReferenceItem, ReferenceSet, human_eval, load_references


def test_human_eval_is_whole() -> None:
    """164 problems (Chen et al. 2021), four texts each."""
    found = human_eval()
    assert (found.name, found.problems, len(found.items)) == ("human-eval", 164, 656)
    first = {item.part: item.text for item in found.items if item.problem == "HumanEval/0"}
    assert first["function"] == first["prompt"] + first["solution"]
    assert "has_close_elements" in first["prompt"] and "abs(" in first["solution"] and "def check" in first["test"]


def test_a_digest_changes_with_any_item() -> None:
    item = ReferenceItem(problem="1", part="prompt", text="abc")
    digests = {
        ReferenceSet(name="a", items=(item,)).digest,
        ReferenceSet(name="b", items=(item,)).digest,
        ReferenceSet(name="a", items=(item, item)).digest,
        ReferenceSet(name="a", items=(ReferenceItem(problem="1", part="prompt", text="abd"),)).digest,
    }
    assert len(digests) == 4


def test_local_files(tmp_path: Path) -> None:
    rows = [{"task": "x", "question": "What?", "answer": "That."}, {"question": "Why?"}]
    text = "\n".join(json.dumps(row) for row in rows) + "\n\n"
    (tmp_path / "own.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    source = LocalReference(name="own", path=tmp_path / "own.jsonl.gz", problem="task", texts=("question", "answer"))
    [found] = load_references([source])
    assert [(item.problem, item.part, item.text) for item in found.items] == [
        ("x", "question", "What?"),
        ("x", "answer", "That."),
        ("2", "question", "Why?"),
    ]


def test_names_and_paths_in_one_list(tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_text('{"id": 7, "prompt": "p"}')
    names = [found.name for found in load_references(["human-eval", f"more={tmp_path / 'more.jsonl'}"])]
    assert names == ["human-eval", "more"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "one JSON object a line"),
        ('{"id": 1}', "one of the text fields"),
        ("[1]", "text fields"),
        ("\n", "at least one problem"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "own.jsonl").write_text(content)
    with pytest.raises(UserError, match=expected) as caught:
        load_references([f"own={tmp_path / 'own.jsonl'}"])
    assert "own.jsonl" in str(caught.value) and "\n" not in str(caught.value)


def test_wrong_names() -> None:
    with pytest.raises(UserError, match="human-eval, or NAME=PATH"):
        load_references(["human_eval"])
    with pytest.raises(UserError, match="each name once"):
        load_references(["human-eval", "human-eval"])
    with pytest.raises(UserError, match="path of a JSONL file"):
        load_references(["own=nowhere.jsonl"])
