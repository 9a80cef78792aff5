"""What a row of another's format carries of ours, in two columns of text beside the format's own.

    envfactory_task    JSON: the task's manifest, origins, name, families, keys and text, and the digest of the other columns
    envfactory_blobs   JSON: {digest: base64} of the blobs that no row above carries; empty where blobs stay behind

So a row of an export names the task that it was: importing it gives the same digest, in any registry that has the
blobs or gets them from the file, whatever order its rows came to be in. A row whose other columns were changed since is
refused: it says two things.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factory.core.digest import Digest, digest_bytes
from factory.core.errors import UserError
from factory.core.task import Candidate, Origin
from registry.admission import named_blobs
from registry.exchange.jsonl import candidates_of, import_blob, record_of
from registry.exchange.rows import Values
from registry.exchange.values import decoded, encoded
from registry.store import Registry

TASK = "envfactory_task"
BLOBS = "envfactory_blobs"
VERSION = 1
ROW = "row"
"""Parameter of an origin: the row that the task was made of, as JSON text."""
FORMAT = "format"
"""Parameter of an origin: the format of that row."""


def foreign_row(origins: list[Origin], form: str) -> dict[str, Any] | None:
    """The row of that format that a task was made of; None when it was made of none."""
    for origin in origins:
        if origin.parameters.get(FORMAT) == form:
            return {name: decoded(value) for name, value in json.loads(str(origin.parameters[ROW])).items()}
    return None


def columns(registry: Registry, candidate: Candidate, others: Values, written: set[Digest], *, blobs: bool) -> dict[str, str]:
    """The two columns of a task beside `others`. `written` are the blobs that rows above carry, and grows."""
    record = record_of(registry, candidate)
    del record["evidence"]
    first, *further = record["origins"]
    record["origins"] = [first, *sorted(further, key=lambda origin: json.dumps(origin, sort_keys=True))]
    record |= {"version": VERSION, "columns": _digest(others)}
    carried = {}
    for digest in named_blobs(candidate.task, registry.blobs, written) if blobs else ():
        if digest not in written:
            written.add(digest)
            carried[digest] = base64.b64encode(registry.blobs.get(digest)).decode()
    return {TASK: json.dumps(record, sort_keys=True), BLOBS: json.dumps(carried, sort_keys=True)}


def without_ours(values: Values) -> dict[str, Any]:
    """The columns of a row that are not of this project."""
    return {name: value for name, value in values.items() if name not in (TASK, BLOBS)}


def store_blobs(registry: Registry, values: Values, path: Path, number: int) -> int:
    """Store the blobs that a row carries and return how many. Raises UserError when one is not what its digest says."""
    carried = _json(values.get(BLOBS) or "{}", BLOBS, number)
    for digest, data in carried.items():
        import_blob(registry, {"blob": digest, "data": data}, path, number)
    return len(carried)


def carried_task(values: Values, path: Path, number: int) -> list[Candidate]:
    """The task that a row was exported from, one candidate for each origin. Raises UserError."""
    record = _json(values[TASK], TASK, number)
    if record.get("version") != VERSION:
        raise UserError(f"row {number}: {TASK}", record.get("version"), f"version {VERSION}")
    if record.get("columns") != _digest(without_ours(values)):
        raise UserError(f"row {number}", TASK, f"the columns that it was exported with, or none named {TASK}")
    if "task" not in record:
        raise UserError(f"row {number}: {TASK}", sorted(record)[:5], "a task with its digest")
    return candidates_of(record, path, number)


def _json(text: object, name: str, number: int) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UserError(f"row {number}: {name}", str(text)[:60], "a JSON object as text")
    return value


def _digest(values: Mapping[str, Any]) -> Digest:
    """Of columns, null ones apart: Parquet has no absent ones."""
    held = {name: encoded(value) for name, value in values.items() if value is not None}
    return digest_bytes(json.dumps(held, sort_keys=True).encode())
