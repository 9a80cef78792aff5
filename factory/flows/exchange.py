"""Tasks in and out, in this project's own format and in those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from factory.core.digest import Digest, digest_bytes
from factory.core.errors import FactoryError, UserError
from factory.core.task import Candidate, TaskKind
from factory.flows import making
from factory.flows.night import Night, Progress
from factory.flows.workshop import Workshop
from factory.settings import Settings
from generators.repository.exchange.checkouts import Checkouts, Place
from generators.repository.exchange.exported import EXPORTS
from generators.repository.exchange.imported import Imported, RowImporter
from generators.repository.generator import RepositoryGenerator
from registry.exchange import carried
from registry.exchange.jsonl import export_tasks, import_tasks
from registry.exchange.rows import FORMATS, Reject, Row, RowFormat, Values, parse, read_rows, write_rows
from registry.exchange.values import encoded
from registry.store import Registry

OWN = "envfactory"
"""The format of `registry.exchange.jsonl`."""
BATCH = 8
"""Tasks that are checked together."""


def export(
    settings: Settings,
    registry: Registry,
    digests: Sequence[Digest],
    path: Path,
    form: str,
    *,
    blobs: bool,
    progress: Progress,
) -> dict[str, Any]:
    """Write tasks to a file. Tasks of other kinds than the format's are listed as left out.

    Raises UserError, GeneratorError for a reference solution that fails, and SandboxError when the back end cannot work here.
    """
    with Workshop(settings, registry) as shop:
        if form == OWN:
            return {"file": str(path), **asdict(export_tasks(shop.registry, digests, path)), "left_out": []}
        rows, left_out = [], []
        written: set[Digest] = set()
        progress.stage("export", len(digests))
        for digest in digests:
            candidate = shop.registry.candidate(digest)
            if candidate.task.kind is TaskKind.REPOSITORY:
                rows.append(_row(shop, candidate, form, written, blobs))
            else:
                left_out.append({"task": digest, "reason": f"a {candidate.task.kind.value} task has no such row"})
            progress.advance()
        write_rows(rows, path)
        return {"file": str(path), "tasks": len(rows), "blobs": len(written), "left_out": left_out}


def _row(shop: Workshop, candidate: Candidate, form: str, written: set[Digest], blobs: bool) -> Values:
    """The row that the task was made of, as it was, else its columns in that format; and what it carries of ours."""
    held = carried.foreign_row(shop.registry.origins(candidate.task.digest), form)
    row = held if held is not None else EXPORTS[form](candidate, shop.backend, shop.blobs)
    return {**row, **carried.columns(shop.registry, candidate, row, written, blobs=blobs)}


def import_(settings: Settings, path: Path, form: str, place: Place, *, progress: Progress) -> dict[str, Any]:
    """Read a file of tasks, register them as candidates and check them. What became of every row is told.

    Raises UserError for a file that can not be read, or an option that is not right.
    """
    with Workshop.open(settings) as shop:
        if form == OWN:
            return {"file": str(path), **asdict(import_tasks(shop.registry, path))}
        night = Night.occasion(shop, f"import/{form}/{_name(path)}", seed=0, progress=progress)
        report = _Import(shop, night, path, FORMATS[form], place).run(progress)
        shop.registry.finish_run(night.run.id)
        return {"run": night.run.id, "file": str(path), **report}


def _name(path: Path) -> str:
    """A run's name for a file, by its content. Raises UserError when it cannot be read."""
    try:
        return digest_bytes(path.read_bytes())[:16]
    except OSError as error:
        raise UserError("file", str(path), f"a readable file of rows ({error.strerror})") from None


class _Import:
    """One file's rows, each by itself: a row that cannot become a task sinks no other."""

    def __init__(self, shop: Workshop, night: Night, path: Path, form: RowFormat, place: Place) -> None:
        self._shop, self._night, self._path, self._form = shop, night, path, form
        generator = RepositoryGenerator(shop.repository, cache=shop.cache / "projects", backend=shop.backend)
        self._importer = RowImporter(generator, Checkouts(place, generator.fleet, shop.cache / "projects"))
        self._rejects: list[Reject] = []
        self._disagreements: list[dict[str, Any]] = []
        self._made: dict[Digest, bool] = {}

    def run(self, progress: Progress) -> dict[str, Any]:
        rows = self._carried()
        progress.stage("import", rows)
        for number, values in read_rows(self._path):
            if isinstance(values, Reject):
                self._rejects.append(values)
            else:
                self._take(number, values)
            progress.advance()
        new = [digest for digest, created in self._made.items() if created]
        faults = self._check(new, progress)
        report = {
            "rows": rows,
            "tasks": len(self._made),
            "new": len(new),
            "digests": list(self._made),
            "rejected": [asdict(one) for one in self._rejects],
            "disagreements": self._disagreements,
            "not_judged": faults,
        }
        self._shop.registry.record_stage(self._night.run.id, "import", report)
        return report

    def _carried(self) -> int:
        """Store the blobs of all rows first, since rows may have come into another order; returns how many rows there are."""
        rows = 0
        for number, values in read_rows(self._path):
            rows += 1
            if not isinstance(values, Reject) and values.get(carried.BLOBS):
                try:
                    carried.store_blobs(self._shop.registry, values, self._path, number)
                except UserError as error:
                    self._refuse(number, values, error)
        return rows

    def _take(self, number: int, values: Values) -> None:
        if any(reject.number == number for reject in self._rejects):
            return
        try:
            if values.get(carried.TASK):
                candidates = carried.carried_task(values, self._path, number)
            else:
                candidates = [self._built(parse(self._form, number, values))]
            for registered in self._shop.registry.register_many(candidates, run=self._night.run.id):
                self._made[registered.digest] = self._made.get(registered.digest, False) or registered.created
        except FactoryError as error:
            self._refuse(number, values, error)

    def _built(self, row: Row) -> Candidate:
        kept = {name: encoded(value) for name, value in carried.without_ours(row.values).items()}
        made: Imported = self._importer.build(row, kept, self._shop.blobs)
        if made.disagreement:
            said = {"row": row.number, "instance_id": row.instance_id, **made.disagreement.as_json()}
            self._disagreements.append(said)
        return made.candidate

    def _refuse(self, number: int, values: Values, error: FactoryError) -> None:
        name = values.get("instance_id")
        reason = " ".join(str(error).split())
        self._rejects.append(Reject(number, name[:200] if isinstance(name, str) else "", reason))

    def _check(self, digests: Sequence[Digest], progress: Progress) -> list[str]:
        """Validity, loopholes and leaks of new tasks; returns the faults of those that could not be judged."""
        faults: list[str] = []
        progress.stage("validate", len(digests))
        for start in range(0, len(digests), BATCH):
            tasks = [self._shop.registry.task(digest) for digest in digests[start : start + BATCH]]
            faults += [one.fault for one in making.check(self._night, tasks) if one.evidence is None]
            for _ in tasks:
                progress.advance()
        return faults
