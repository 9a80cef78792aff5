"""The database generator: a series of composed tasks from a seed."""

from __future__ import annotations

from collections.abc import Iterator

from factory.core.blobs import BlobStore, put_json
from factory.core.files import FileTree
from factory.core.streams import stream
from factory.core.task import Candidate, EnvironmentSpec, Task, TaskKind, VerifierSpec
from generators.composition import compose
from generators.database.config import DatabaseConfig
from generators.database.data import evidence, seeded
from generators.database.verifiers import asked, files, whole
from sandboxes.verification.bundles import bundle


class DatabaseGenerator:
    """Candidates on SQLite databases; expected states are computed in Python, never by the reference statements.

    A request that changes tables is judged by the whole state of the one database that the agent changed:
    only that state is handed in, not the statements that led there. A request for an answer asks for a
    view: its text is handed in with the database, and is judged on further databases too.
    """

    name = "database"
    version = "1"

    def __init__(self, config: DatabaseConfig | None = None) -> None:
        self.config = config or DatabaseConfig()

    def generate(self, blobs: BlobStore, *, seed: int, start: int, count: int) -> Iterator[Candidate]:
        """Candidates `start` to `start + count - 1` of the series of `seed`; every number gives one."""
        for number in range(start, start + count):
            rng = stream(seed, "database", "task", number)
            composition, names = compose(self.config, self.config.space.draw(rng), rng)
            databases = seeded(composition, names, seed=seed, number=number, count=2 * self.config.others)
            own, first, second = databases[0], databases[1 : 1 + self.config.others], databases[1 + self.config.others :]
            trained = bundle(
                blobs, checker="database", spec=asked(composition, own, first), files=FileTree.of(blobs, files(first))
            )
            held_out = bundle(blobs, checker="database", spec=whole(own, second), files=FileTree.of(blobs, files(second)))
            task = Task(
                kind=TaskKind.DATABASE,
                instruction=composition.instruction,
                environment=EnvironmentSpec(
                    files=FileTree.of(blobs, {"data.db": own.data}).save(blobs),
                    tools=("sql", "submit"),
                    limits=self.config.limits,
                ),
                verifier=VerifierSpec(bundle=trained),
                held_out=VerifierSpec(bundle=held_out),
                solution=put_json(blobs, composition.demonstration.manifest()),
            )
            yield composition.candidate(
                task, version=self.version, seed=seed, number=number, evidence={"databases": evidence(composition, databases)}
            )
