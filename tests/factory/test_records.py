"""Records are whole or absent, whatever cut their writing short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.records import read_record, write_record

WRITER = """
import sys
from pathlib import Path
from factory.records import write_record
number = 0
while True:
    number += 1
    write_record(Path(sys.argv[1]), [number] * 20_000)
"""


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.json"
    assert read_record(path) is None
    write_record(path, {"b": [1, None], "a": "\u00e9"})
    assert json.loads(path.read_text()) == read_record(path) == {"a": "\u00e9", "b": [1, None]}
    assert list(read_record(path)) == ["b", "a"]
    write_record(path, 7)
    assert read_record(path) == 7
    assert [one.name for one in path.parent.iterdir()] == ["a.json"]


def test_a_record_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_record(path, 1)
    with pytest.raises(TypeError):
        write_record(path, {"a": object()})
    assert read_record(path) == 1


def test_whoever_reads_during_a_write_sees_a_whole_record(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], env={**os.environ, "PYTHONPATH": str(root)}) as writer:
        try:
            while read_record(path) is None:
                assert writer.poll() is None
            seen = [read_record(path) for _ in range(200)]
        finally:
            writer.kill()
    assert all(len(value) == 20_000 and len(set(value)) == 1 for value in seen)
    assert len({value[0] for value in seen}) > 1, "nothing was written meanwhile"
