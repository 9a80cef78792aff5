"""The one settings model: `factory.toml`, overridden by environment variables, overridden by flags.

`FACTORY_POLICY__LINE=tiny` sets `policy.line`. Sections of rooms whose configuration lives beside their code
(`terminal`, `database`, `repository`, `warmstart`, `train`, `screen`) are tables here; `section` turns one into its typed
configuration, so that listing tasks does not import torch.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
import typing
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from factory.core.digest import Digest, digest_bytes
from factory.core.errors import UserError

DEFAULT_FILE = Path("factory.toml")
Table = dict[str, Any]
Config = TypeVar("Config")


class Section(BaseModel):
    """A frozen table without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SandboxSettings(Section):
    """Where commands run."""

    backend: Literal["bubblewrap", "docker"] = "bubblewrap"
    docker_image: str = "python:3.11-slim"
    """Base image of the docker back end."""
    workers: int = Field(4, ge=1)
    """Sandboxes at work at once."""


class ShareSettings(Section):
    """Parts of the warm start's demonstrations, relative to each other; 0 leaves a kind out."""

    terminal: float = Field(1.0, ge=0)
    database: float = Field(1.0, ge=0)
    repository: float = Field(0.0, ge=0)


class PolicySettings(Section):
    """Which policy is sampled, and how."""

    line: str = "tiny"
    """Name of the policy line."""
    source: str = "tiny"
    """What a new line begins from: `tiny`, `smollm2`, or a model's folder or hub name."""
    servers: tuple[str, ...] = ()
    """Addresses of vLLM servers that serve the policy; empty: vLLM runs in this process."""
    shares: ShareSettings = ShareSettings()
    dtype: Literal["float32", "bfloat16"] = "float32"
    temperature: float = Field(1.0, gt=0)
    max_tokens: int = Field(64, ge=1)
    """Most tokens of one turn."""
    max_context: int = Field(512, ge=16)
    """Most tokens of one episode."""
    kv_cache_gib: float = Field(0.5, gt=0)
    """Memory of the engine's key-value cache, GiB."""
    samples: int = Field(8, ge=2)
    """Rollouts of one assessment."""
    invalid_calls: Literal["continue", "end"] = "continue"
    """What follows an answer that is no valid call."""


class GenerateSettings(Section):
    """How many candidates of each kind one night makes."""

    seed: int | None = None
    """Seed of the series; None: the date decides, so every night makes others."""
    terminal: int = Field(300, ge=0)
    database: int = Field(100, ge=0)
    repository: int = Field(60, ge=0)


class SplitSettings(Section):
    """The sealed holdout."""

    name: str = "main"
    compositions: int = Field(150, ge=1)
    """Tasks wanted in the holdout of new compositions and names."""
    apart: tuple[str, ...] = ()
    """Families and repositories that are never trained on, besides those that generators set apart."""


class NightlySettings(Section):
    """The nightly flow and the budgets at which it ends with what it has."""

    cron: str = "0 2 * * *"
    timezone: str = "UTC"
    shard: int = Field(50, ge=1)
    """Candidates of one task of the flow."""
    seconds: float | None = Field(None, gt=0)
    disk_gib: float | None = Field(None, gt=0)
    tokens: int | None = Field(None, gt=0)
    """Tokens sampled from the policy."""


class EvaluateSettings(Section):
    """Evaluation on the holdout."""

    samples: int = Field(8, ge=1)
    """Rollouts of each task."""


class Settings(BaseSettings):
    """Everything that a run depends on."""

    model_config = SettingsConfigDict(env_prefix="FACTORY_", env_nested_delimiter="__", extra="forbid", frozen=True)

    data: Path = Path("data")
    """Folder of everything that is stored."""
    registry: str = ""
    """Address of the registry's database; empty: SQLite in the data folder."""
    sandbox: SandboxSettings = SandboxSettings()
    policy: PolicySettings = PolicySettings()
    generate: GenerateSettings = GenerateSettings()
    split: SplitSettings = SplitSettings()
    nightly: NightlySettings = NightlySettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    terminal: Table = {}
    database: Table = {}
    repository: Table = {}
    screen: Table = {}
    warmstart: Table = {}
    train: Table = {}

    file: ClassVar[Path | None] = None

    @property
    def database_url(self) -> str:
        return self.registry or f"sqlite:///{(self.data / 'registry.db').resolve()}"

    @property
    def digest(self) -> Digest:
        """Of what decides the result: the place of the data and the budgets may differ between starts of one run."""
        return digest_bytes(self.model_dump_json(exclude={"data": True, "registry": True, "nightly": True}).encode())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags before the environment before the file."""
        file = cls.file
        return (init_settings, env_settings, *([TomlConfigSettingsSource(settings_cls, file)] if file else []))


def load_settings(config: Path | None, **flags: Any) -> Settings:
    """Read the settings. `config` None means `factory.toml` where there is one. Raises UserError in one line.

    `flags` are nested tables (`{"policy": {"line": "x"}}`) of what a person gave on the command line.
    """
    file = config or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    if file is not None and not file.is_file():
        raise UserError("--config", str(file), "a settings file that exists")
    source = type("Settings", (Settings,), {"file": file, "__module__": __name__, "__doc__": Settings.__doc__})
    try:
        return source(**flags)
    except tomllib.TOMLDecodeError as error:
        raise UserError("--config", str(file), f"a TOML file ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(".".join(map(str, first["loc"])), first.get("input"), first["msg"]) from None


def section(config: type[Config], table: Table, name: str) -> Config:
    """A room's typed configuration from its table. Raises UserError that names the field."""
    hints = typing.get_type_hints(config)
    fields = {field.name for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    values: Table = {}
    for key, value in table.items():
        if key not in fields:
            raise UserError(f"{name}.{key}", value, f"one of {', '.join(sorted(fields))}")
        values[key] = _value(hints[key], value, f"{name}.{key}")
    return config(**values)


def _value(hint: Any, value: Any, name: str) -> Any:
    nested = next((part for part in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(part)), None)
    if nested is not None and isinstance(value, dict) and isinstance(nested, type):
        return section(nested, value, name)
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        raise UserError(name, value, error.errors()[0]["msg"]) from None


def environment_names() -> list[str]:
    """Environment variables that would override a setting now (for `factory doctor`)."""
    return sorted(name for name in os.environ if name.startswith("FACTORY_"))
