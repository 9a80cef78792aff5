"""The one settings model: `factory.toml`, overridden by environment variables, overridden by flags.

`FACTORY_POLICY__LINE=tiny` sets `policy.line`. Sections of rooms whose configuration lives beside their code
(`terminal`, `database`, `repository`, `endpoint`, `warmstart`, `train`, `screen`, `determinism`) are tables here;
`section` turns one into its typed configuration, so that listing tasks does not import torch.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import tomllib
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from factory.core.digest import Digest, digest_bytes
from factory.core.errors import UnknownField, UserError

DEFAULT_FILE = Path("factory.toml")
PREFIX = "FACTORY_"
LOG = "FACTORY_LOG"
"""Environment variable with the level of the log; no setting, since it is read before any."""
Table = dict[str, Any]
Config = TypeVar("Config")


class Section(BaseModel):
    """A frozen table without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SandboxSettings(Section):
    """Where commands run."""

    backend: Literal["bubblewrap", "docker"] = "bubblewrap"
    """`bubblewrap` needs no root and no daemon; `docker` a running Docker Engine."""
    docker_image: str = "python:3.11-slim"
    """Base image of the docker back end."""
    layers_gib: float = Field(default=4.0, gt=0)
    """Room that the files of tasks, laid out once for all bubblewrap sandboxes, may take below the data folder, GiB."""
    workers: int = Field(default=4, ge=1)
    """Sandboxes at work at once."""


class ShareSettings(Section):
    """Parts of the warm start's demonstrations, relative to each other; 0 leaves a kind out."""

    terminal: float = Field(default=1.0, ge=0)
    """Weight of terminal demonstrations."""
    database: float = Field(default=1.0, ge=0)
    """Weight of database demonstrations."""
    repository: float = Field(default=0.0, ge=0)
    """Weight of repository demonstrations; the tiny policy is too small for them."""


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
    """Type of the engine's weights; with `bfloat16` the proof that weights arrived is coarser."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature at which tasks are assessed and the holdout is evaluated; training has its own, `train.rollout.sampling`."""
    max_tokens: int = Field(default=64, ge=1)
    """Most tokens of one turn."""
    max_context: int = Field(default=512, ge=16)
    """Most tokens of one episode."""
    kv_cache_gib: float = Field(default=0.5, gt=0)
    """Memory of the engine's key-value cache, GiB."""
    samples: int = Field(default=8, ge=2)
    """Rollouts of one assessment."""
    invalid_calls: Literal["continue", "end"] = "end"
    """What follows an answer that is no valid call: the policy is told and goes on, or the episode ends and is graded."""


class GenerateSettings(Section):
    """How many candidates of each kind one night makes."""

    seed: int | None = None
    """Seed of the series; None: the date decides, so every night makes others."""
    terminal: int = Field(default=300, ge=0)
    """Terminal tasks: instructions over generated file trees."""
    database: int = Field(default=100, ge=0)
    """Database tasks: instructions over seeded SQLite databases."""
    repository: int = Field(default=60, ge=0)
    """Repository tasks: bugs in real projects."""


class SplitSettings(Section):
    """The sealed holdout."""

    name: str = "main"
    """Name of the split that nights fill and evaluations read."""
    compositions: int = Field(default=150, ge=1)
    """Tasks wanted in the holdout of new compositions and names; the generators' `apart` says which families are held out."""


class NightlySettings(Section):
    """The nightly flow and the budgets at which it ends with what it has."""

    cron: str = "0 2 * * *"
    """When `factory serve` runs a night: minute, hour, day, month, weekday."""
    timezone: str = "UTC"
    """Name of the time zone of `cron`."""
    shard: int = Field(default=50, ge=1)
    """Candidates of one task of the flow; an eighth of them for repository tasks, which take longer."""
    seconds: float | None = Field(default=None, gt=0)
    """Wall time of one start, seconds; None: no bound."""
    disk_gib: float | None = Field(default=None, gt=0)
    """Fall of the free space on the data folder's disk, GiB; None: no bound."""
    tokens: int | None = Field(default=None, gt=0)
    """Tokens sampled from the policy; None: no bound."""


class EvaluateSettings(Section):
    """Evaluation on the holdout."""

    samples: int = Field(default=8, ge=1)
    """Rollouts of each task."""


class Settings(BaseSettings):
    """Everything that a run depends on."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True)

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
    endpoint: Table = {}
    screen: Table = {}
    determinism: Table = {}
    warmstart: Table = {}
    train: Table = {}

    file: ClassVar[Path | None] = None

    @property
    def database_url(self) -> str:
        return self.registry or f"sqlite:///{(self.data / 'registry.db').resolve()}"

    @property
    def digest(self) -> Digest:
        """Of `deciding`."""
        return digest_bytes(json.dumps(self.deciding, sort_keys=True).encode())

    @property
    def deciding(self) -> Table:
        """What decides the result, as JSON: the place of the data, the budgets, how the endpoint is reached and what only
        `tasks replay` reads may differ between starts of one run."""
        values = self.model_dump(mode="json", exclude={"data", "registry", "nightly", "determinism"})
        asked = values["endpoint"]
        values["endpoint"] = {"model": asked.get("model", "")} if asked.get("address") else {}
        values["train"] = {name: value for name, value in values["train"].items() if name not in ("steps", "seconds")}
        return values

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
    _check_environment()
    source = type("Settings", (Settings,), {"file": file, "__module__": __name__, "__doc__": Settings.__doc__})
    try:
        return source(**flags)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError("--config", str(file), f"a TOML file ({error})") from None
    except SettingsError as error:
        raise UserError("environment", str(error), "values of the settings' types, tables as JSON") from None
    except ValidationError as error:
        raise _user_error(Settings, error.errors()[0], "") from None


def _check_environment() -> None:
    """Refuse a variable that would set nothing: a typing error is no setting."""
    for name in environment_names():
        first = name.removeprefix(PREFIX).split("__")[0].lower()
        if first not in Settings.model_fields and name != LOG:
            raise UnknownField(name, os.environ[name], _known(first, [*Settings.model_fields], PREFIX, str.upper))


def _user_error(model: type[BaseModel], error: ErrorDetails, prefix: str) -> UserError:
    """One pydantic error in the words of `UserError`."""
    path = [str(part) for part in error["loc"]]
    name = ".".join([*([prefix] if prefix else []), *path])
    if error["type"] == "extra_forbidden":
        for part in path[:-1]:
            annotation = model.model_fields[part].annotation
            assert isinstance(annotation, type) and issubclass(annotation, BaseModel)  # what else forbids fields?
            model = annotation
        return UnknownField(name, error["input"], _known(path[-1], [*model.model_fields]))
    return UserError(name, error["input"], _expected(error))


def _expected(error: ErrorDetails) -> str:
    """Pydantic's message as what would be right: `Input should be a valid integer` is `a valid integer`."""
    if error["type"] in ("model_type", "dict_type"):
        return "a table"
    words = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"a value {words}" if words.startswith(("greater", "less")) else words[:1].lower() + words[1:]


def _known(name: str, fields: list[str], prefix: str = "", case: Callable[[str], str] = str) -> str:
    """The field that was meant, or else all that there are."""
    close = difflib.get_close_matches(name.lower(), fields, n=1)
    return f"{prefix}{case(close[0])}" if close else f"one of {', '.join(prefix + case(field) for field in sorted(fields))}"


def section(config: type[Config], table: Table, name: str, base: Any = None) -> Config:
    """A room's typed configuration from its table. Raises UserError that names the field.

    Fields that the table leaves out are those of `base`, else the class's own: a nested table overrides what its
    owner has by default in that place, which may differ from the defaults of the nested class.
    """
    hints = typing.get_type_hints(config)
    fields = {field.name: field for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    values: Table = {}
    for key, value in table.items():
        if key not in fields:
            raise UnknownField(f"{name}.{key}", value, _known(key, sorted(fields)))
        factory = fields[key].default_factory
        default = factory() if callable(factory) else fields[key].default
        values[key] = _value(hints[key], value, f"{name}.{key}", default if base is None else getattr(base, key))
    return config(**values) if base is None else dataclasses.replace(base, **values)


def _value(hint: Any, value: Any, name: str, default: Any) -> Any:
    nested = next((part for part in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(part)), None)
    if nested is not None and isinstance(value, dict) and isinstance(nested, type):
        return section(nested, value, name, default if isinstance(default, nested) else None)
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        raise UserError(name, value, _expected(error.errors()[0])) from None


def environment_names() -> list[str]:
    """Environment variables that would override a setting now (for `factory doctor`)."""
    return sorted(name for name in os.environ if name.startswith(PREFIX))
