"""The opened parts of one data folder: registry, back end, generators, policies."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from factory.core.errors import UserError
from factory.core.task import TaskKind
from factory.settings import Settings, section
from generators.contract import Generator
from registry.store import Registry
from sandboxes.backends import open_backend
from sandboxes.contract import Backend

if TYPE_CHECKING:
    from factory.agent.endpoint import Endpoint
    from generators.database.config import DatabaseConfig
    from generators.repository.config import RepositoryConfig
    from generators.terminal.config import TerminalConfig


class Workshop:
    """Parts are opened when first asked for. A context manager; safe for the threads of one flow."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self.settings, self.registry = settings, registry
        self.blobs = registry.blobs

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Make the data folder where there is none. Raises UserError when it cannot be."""
        try:
            settings.data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError("--data", str(settings.data), f"a folder that can be made ({error.strerror})") from None
        return cls(settings, Registry.open(settings.database_url, settings.data / "blobs"))

    @property
    def cache(self) -> Path:
        """What can be made again: layers of sandboxes, downloads of projects."""
        return self.settings.data / "cache"

    @property
    def policies(self) -> Path:
        """Root of the policies' folders."""
        return self.settings.data / "policies"

    @cached_property
    def backend(self) -> Backend:
        """The sandbox back end of the settings. Raises SandboxError when it cannot work here."""
        settings = self.settings.sandbox
        return open_backend(
            settings.backend,
            cache=self.cache / "layers",
            docker_image=settings.docker_image,
            layer_bytes=round(settings.layers_gib * 2**30),
        )

    @cached_property
    def terminal(self) -> TerminalConfig:
        from generators.terminal.config import TerminalConfig

        return section(TerminalConfig, self.settings.terminal, "terminal")

    @cached_property
    def database(self) -> DatabaseConfig:
        from generators.database.config import DatabaseConfig

        return section(DatabaseConfig, self.settings.database, "database")

    @cached_property
    def repository(self) -> RepositoryConfig:
        from generators.repository.config import RepositoryConfig

        return section(RepositoryConfig, self.settings.repository, "repository")

    @cached_property
    def endpoint(self) -> Endpoint | None:
        """The language model that helps generators; None where the settings name none. Raises UserError."""
        from factory.agent.endpoint import Endpoint, EndpointConfig

        config = section(EndpointConfig, self.settings.endpoint, "endpoint")
        return Endpoint(config, self.settings.data / "answers") if config.address else None

    @cached_property
    def generators(self) -> dict[TaskKind, Generator]:
        """A generator for each kind that the settings ask for."""
        counts = self.settings.generate
        made: dict[TaskKind, Generator] = {}
        if counts.terminal:
            from generators.terminal.generator import TerminalGenerator

            made[TaskKind.TERMINAL] = TerminalGenerator(self.terminal)
        if counts.database:
            from generators.database.generator import DatabaseGenerator

            made[TaskKind.DATABASE] = DatabaseGenerator(self.database)
        if counts.repository:
            from generators.repository.generator import RepositoryGenerator

            made[TaskKind.REPOSITORY] = RepositoryGenerator(
                self.repository, cache=self.cache / "projects", backend=self.backend
            )
        return made

    def close(self) -> None:
        """Release what was opened."""
        if "backend" in self.__dict__:
            self.backend.close()
        endpoint: Endpoint | None = self.__dict__.get("endpoint")
        if endpoint is not None:
            endpoint.close()
        self.registry.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
