"""Tasks with everything they need as one self-contained file of JSON lines.

    {"format": "envfactory tasks", "version": 1}
    {"blob": <digest>, "data": <base64>}                      every blob once, before the first task that needs it
    {"task": <digest>, "manifest": {...}, "origins": [{...}], "name": ..., "families": [...], "keys": [...],
     "text": ..., "evidence": [{...}]}
    {"end": {"blobs": n, "tasks": n}}

Compressed with gzip when the file's name ends in `.gz`. On import every digest is computed anew from
what was read; tasks arrive as candidates, whatever they were elsewhere: this registry's filters judge
them. Evidence travels for people to read and is not imported.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from factory.core.digest import Digest, digest_bytes
from factory.core.errors import FactoryError, UserError
from factory.core.task import Candidate, Origin, SplitKeys, Task, canonical_key
from registry.admission import named_blobs
from registry.store import Registry

FORMAT = "envfactory tasks"
VERSION = 1
_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class Exchanged:
    """What went over."""

    tasks: int
    blobs: int
    created: int = 0
    """Import: tasks that this registry did not have."""


def export_tasks(registry: Registry, digests: Iterable[Digest], path: Path | str) -> Exchanged:
    """Write tasks with all their blobs to `path`, which appears whole or not at all. Raises NotFound for an unknown task."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.partial")
    written: set[Digest] = set()
    count = 0
    try:
        with _opened(partial, "wb", target.suffix == ".gz") as file:
            _write(file, {"format": FORMAT, "version": VERSION})
            for digest in dict.fromkeys(digests):
                candidate = registry.candidate(digest)
                for blob in named_blobs(candidate.task, registry.blobs, written):
                    if blob not in written:
                        written.add(blob)
                        _write(file, {"blob": blob, "data": base64.b64encode(registry.blobs.get(blob)).decode()})
                _write(file, record_of(registry, candidate))
                count += 1
            _write(file, {"end": {"blobs": len(written), "tasks": count}})
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return Exchanged(tasks=count, blobs=len(written))


def import_tasks(registry: Registry, path: Path | str, *, run: str | None = None) -> Exchanged:
    """Read a file of `export_tasks` and register its tasks as candidates, in batches of 500; importing again is a no-op.

    Raises UserError, naming the line, for a file of another format or version, one that is cut off, or
    content that does not have the digest it claims; and what `Registry.register_many` raises.
    """
    source = Path(path)
    tasks = blobs = created = 0
    pending: list[Candidate] = []
    ended = False
    for number, record in _records(source):
        if "blob" in record:
            import_blob(registry, record, source, number)
            blobs += 1
        elif "task" in record:
            pending.extend(candidates_of(record, source, number))
            tasks += 1
        elif "end" in record:
            ended = record["end"] == {"blobs": blobs, "tasks": tasks}
        if len(pending) >= _BATCH:
            created += _register(registry, pending, run)
            pending = []
    if not ended:
        raise UserError("file", str(source), "a whole export; this one is cut off or lacks lines")
    created += _register(registry, pending, run)
    return Exchanged(tasks=tasks, blobs=blobs, created=created)


def _register(registry: Registry, candidates: list[Candidate], run: str | None) -> int:
    return sum(registered.created for registered in registry.register_many(candidates, run=run))


def record_of(registry: Registry, candidate: Candidate) -> dict[str, Any]:
    """A task as JSON, without its blobs."""
    digest = candidate.task.digest
    return {
        "task": digest,
        "manifest": candidate.task.manifest(),
        "origins": [origin.manifest() for origin in registry.origins(digest)],
        "name": candidate.name,
        "families": list(candidate.families),
        "keys": list(candidate.keys.keys),
        "text": candidate.text,
        "evidence": [asdict(found) for found in registry.evidence(digest)],
    }


def candidates_of(record: dict[str, Any], source: Path, number: int) -> list[Candidate]:
    """One candidate for each origin of the task in a record. Raises UserError, naming `source` and its line `number`."""
    try:
        task = Task.from_manifest(record["manifest"])
        found = [
            Candidate(
                task=task,
                origin=Origin(**origin),
                name=record["name"],
                families=tuple(record["families"]),
                # Files of older registries may spell repositories in other ways.
                keys=SplitKeys(keys=tuple(dict.fromkeys(map(canonical_key, record["keys"])))),
                text=record["text"],
            )
            for origin in record["origins"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{source}:{number}", record.get("task"), f"a task of this version ({error})") from error
    if not found or task.digest != record["task"]:
        raise UserError(f"{source}:{number}", record["task"], f"the digest of its content, {task.digest}, and an origin")
    return found


def import_blob(registry: Registry, record: dict[str, Any], source: Path, number: int) -> None:
    """Store a blob in base64. Raises UserError unless it is what its digest says."""
    try:
        data = base64.b64decode(record["data"], validate=True)
    except (KeyError, TypeError, binascii.Error) as error:
        raise UserError(f"{source}:{number}", record["blob"], "a blob in base64") from error
    if digest_bytes(data) != record["blob"]:
        raise UserError(f"{source}:{number}", record["blob"], f"the digest of its content, {digest_bytes(data)}")
    registry.blobs.put(data)


def _records(source: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered records after a checked header."""
    try:
        with _opened(source, "rb", source.suffix == ".gz") as file:
            for number, line in enumerate(file, start=1):
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise UserError(f"{source}:{number}", type(record).__name__, "a JSON object on each line")
                if number == 1:
                    _check_header(source, record)
                else:
                    yield number, record
    except FactoryError:
        raise
    except (OSError, EOFError, ValueError) as error:
        raise UserError("file", str(source), f"a readable export of tasks ({error})") from error


def _check_header(source: Path, record: dict[str, Any]) -> None:
    if record.get("format") != FORMAT or record.get("version") != VERSION:
        raise UserError("file", str(source), f"an export of tasks of version {VERSION}; its first line is {str(record)[:80]}")


def _write(file: IO[bytes], record: dict[str, Any]) -> None:
    file.write(json.dumps(record, sort_keys=True).encode() + b"\n")


@contextmanager
def _opened(path: Path, mode: str, compressed: bool) -> Iterator[Any]:
    if not compressed:
        with path.open(mode) as file:
            yield file
        return
    # Neither a file name nor a time: the same tasks give the same bytes.
    with path.open(mode) as raw, gzip.GzipFile(filename="", fileobj=raw, mode=mode, mtime=0) as file:
        yield file
