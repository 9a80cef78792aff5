"""The registry: one facade over the tables and the blobs."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from registry.access import DATABASE_DEFAULTS, Access, DatabaseConfig
from registry.blobs import BLOB_DEFAULTS, FileBlobs, FileBlobsConfig
from registry.database import Database
from registry.judgements import JudgementStore
from registry.maintenance import MaintenanceStore
from registry.policies import PolicyStore
from registry.queries import QueryStore
from registry.rollouts import TrajectoryStore
from registry.runs import RunStore
from registry.schema import prepare


class Registry(JudgementStore, QueryStore, PolicyStore, RunStore, TrajectoryStore, MaintenanceStore):
    """The versioned store of tasks and of everything known about them.

    Safe for several threads and processes at once: writes are short transactions, one at a time.
    It pickles as its address and opens anew in the other process.
    """

    @classmethod
    def open(
        cls,
        url: str,
        blobs: Path | str,
        *,
        database: DatabaseConfig = DATABASE_DEFAULTS,
        blob_config: FileBlobsConfig = BLOB_DEFAULTS,
        access: Access = Access.CREATE,
        upgrade: bool | None = None,
    ) -> Self:
        """Open the registry at `url` (`sqlite:///PATH`, `postgresql+psycopg://...`) with its folder of blobs.

        Creates what is not there, where `access` says so. An older schema is upgraded where the database is embedded, elsewhere
        with `upgrade=True` only. Raises UserError for an address that is none or at which `access` is not
        to be had, RegistryError when the database cannot be used or its schema is newer than this code.
        """
        opened = Database(url, database, access)
        try:
            prepare(opened, upgrade=upgrade)
        except BaseException:
            opened.close()
            raise
        return cls(opened, FileBlobs(blobs, blob_config))

    def __init__(self, database: Database, blobs: FileBlobs) -> None:
        super().__init__(database, blobs)
        self._present = set()

    @property
    def url(self) -> str:
        """The database's address, a password in it left out."""
        return self._database.url.render_as_string()

    def close(self) -> None:
        """Close the connections of this process; the registry opens new ones when it is used again."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        database = self._database
        return _reopen, (database.url.render_as_string(hide_password=False), database.config, database.access, self.blobs)


def _reopen(url: str, config: DatabaseConfig, access: Access, blobs: FileBlobs) -> Registry:
    return Registry(Database(url, config, access), blobs)
