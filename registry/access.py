"""How a registry's database is opened, and the errors of an address that cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Access(StrEnum):
    """What is to be done with a registry."""

    READ = "read"
    """It exists, and is opened read-only where it cannot be written."""
    WRITE = "write"
    """It exists."""
    CREATE = "create"
    """It is made where there is none."""


@dataclass(frozen=True, kw_only=True)
class DatabaseConfig:
    """How the database is used."""

    busy_timeout_s: float = 30.0
    """Longest wait for another writer before one attempt fails, seconds."""
    attempts: int = 4
    """Attempts to become the writer before the store reports that it is locked."""
    durable: bool = False
    """SQLite: flush at every commit. Off, a commit survives SIGKILL; a power cut may lose the last ones, consistently."""


DATABASE_DEFAULTS = DatabaseConfig()
