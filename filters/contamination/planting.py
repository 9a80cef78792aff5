"""Planted items inside the files of tasks: what the way through trees, blobs and notations must not lose.

Each place is a task like those that are made here: a tree of small text files, a database of rows, a project's
modules, and files of data in which texts are escaped or quoted. The rest of its content is of the standard library.
"""

from __future__ import annotations

import csv
import io
import json
import random
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing

from factory.core.blobs import MemoryBlobs, put_json
from factory.core.files import FileTree
from factory.core.streams import stream
from factory.core.syntax import parse_python
from factory.core.task import Candidate, EnvironmentSpec, Origin, SplitKeys, Task, TaskKind, VerifierSpec
from filters.contamination.library import Library, library
from filters.contamination.planted import EXACT, Plant

Files = Mapping[str, bytes | str]
Carrier = Callable[[Plant, random.Random, Library], Files]
"""Writes the files of a task that hold a plant."""


class Planter:
    """Makes candidates that hold a plant in one of their files; blobs stay in memory."""

    def __init__(self, seed: int) -> None:
        self.seed, self.blobs = seed, MemoryBlobs()
        self._nothing = FileTree().save(self.blobs)
        self._solution = put_json(self.blobs, [])

    def candidate(self, plant: Plant, place: str) -> Candidate:
        """A candidate that holds `plant` at `place` (one of PLACES) and nothing else of any reference."""
        kind, carrier = PLACES[place]
        rng = stream(self.seed, "planting", place, plant.reference, plant.problem, plant.kind)
        files = {path: _bytes(content) for path, content in carrier(plant, rng, library()).items()}
        task = Task(
            kind=kind,
            instruction="Put things in order.",
            environment=EnvironmentSpec(files=FileTree.of(self.blobs, files).save(self.blobs)),
            verifier=VerifierSpec(bundle=self._nothing),
            held_out=None,
            solution=self._solution,
        )
        return Candidate(
            task=task,
            origin=Origin(generator="planting", generator_version="1", seed=self.seed),
            name=f"planting/{place}",
            families=("planting",),
            keys=SplitKeys(keys=("signature:planting",)),
            text="",
        )


def _bytes(content: bytes | str) -> bytes:
    return content.encode("utf-8", "replace") if isinstance(content, str) else content


def _terminal(plant: Plant, rng: random.Random, filler: Library) -> Files:
    """A file of its own among small ones."""
    files: dict[str, bytes | str] = {f"file{number}": "\n".join(_sentence(filler, number)) for number in range(3)}
    return files | {"folder/notes": plant.text}


def _rows(plant: Plant, rng: random.Random, filler: Library) -> Files:
    """One cell of a table of twenty rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT)")
        bodies = [" ".join(_sentence(filler, number)) for number in range(20)]
        bodies[rng.randrange(20)] = plant.text
        connection.executemany("INSERT INTO notes VALUES (?, ?, ?)", [(n, f"note {n}", body) for n, body in enumerate(bodies)])
        connection.commit()
        return {"data.db": connection.serialize()}


def _module(plant: Plant, rng: random.Random, filler: Library) -> Files:
    """Between functions of a module where it is Python, else as a string there; beside another module."""
    pasted = f"NOTE = {plant.text!r}"
    if plant.view != EXACT and _is_code(plant.text):
        pasted = plant.text
    functions = list(filler.functions[:4])
    functions.insert(rng.randrange(5), pasted)
    return {"package/__init__.py": "", "package/module.py": "\n\n\n".join(functions), "package/other.py": filler.functions[5]}


def _data(plant: Plant, rng: random.Random, filler: Library) -> Files:
    """A value of a file of data, of one notation or another."""
    name, write = rng.choice(_NOTATIONS)
    around = [" ".join(_sentence(filler, number)) for number in range(6)]
    around.insert(rng.randrange(7), plant.text)
    return {name: write(around)}


def _is_code(text: str) -> bool:
    try:
        return bool(parse_python(text).body)
    except (SyntaxError, ValueError):
        return False


def _sentence(filler: Library, number: int) -> list[str]:
    return filler.prose[number].split()[:12]


def _csv(values: list[str]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(enumerate(values))
    return out.getvalue()


def _sql(values: list[str]) -> str:
    rows = (
        f"INSERT INTO notes VALUES ({number}, '{value.replace(chr(39), chr(39) * 2)}');" for number, value in enumerate(values)
    )
    return "\n".join(rows)


def _notebook(values: list[str]) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": value.splitlines(keepends=True)} for value in values]})


def _markdown(values: list[str]) -> str:
    return "\n\n".join(f"```\n{value}\n```" for value in values)


_NOTATIONS: tuple[tuple[str, Callable[[list[str]], str]], ...] = (
    ("notes.csv", _csv),
    ("notes.json", lambda values: json.dumps({"notes": values}, indent=1)),
    ("notes.jsonl", lambda values: "\n".join(json.dumps({"note": value}) for value in values)),
    ("notes.ipynb", _notebook),
    ("notes.md", _markdown),
    ("notes.sql", _sql),
)
PLACES: dict[str, tuple[TaskKind, Carrier]] = {
    "file of a terminal task": (TaskKind.TERMINAL, _terminal),
    "row of a database": (TaskKind.DATABASE, _rows),
    "module of a repository": (TaskKind.REPOSITORY, _module),
    "file of data": (TaskKind.TERMINAL, _data),
}
"""Where plants are put."""
