"""What every part of the registry works on."""

from __future__ import annotations

from registry.blobs import FileBlobs
from registry.database import Database


class Store:
    """One database and one folder of blobs; the parts of the facade derive from it."""

    def __init__(self, database: Database, blobs: FileBlobs) -> None:
        self._database = database
        self.blobs = blobs
