"""Options that commands share, and how the settings and the registry are opened from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from factory.core.digest import Digest
    from factory.settings import Settings
    from registry.store import Registry

ConfigOption = Annotated[Path | None, typer.Option("--config", help="Settings file; default: factory.toml where there is one.")]
DataOption = Annotated[Path | None, typer.Option("--data", help="Folder of everything that is stored.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON alone on stdout.")]
LineOption = Annotated[
    str | None, typer.Option("--line", help="Policy line whose assessments count; default: the settings' line.")
]


MOST = 2**31 - 1
"""The largest count that an option takes: every database holds it."""


def output_file(path: Path, option: str) -> Path:
    """`path` where a file may be written: new, or in place of a regular one. Raises UserError."""
    from factory.core.errors import UserError

    if not path.name or not path.parent.is_dir() or (path.exists() and not path.is_file()):
        raise UserError(option, str(path), "a file, new or to be replaced, in a folder that exists")
    return path


def settings_of(config: Path | None, data: Path | None, **flags: Any) -> Settings:
    """The settings with the flags that were given."""
    from factory.settings import load_settings

    return load_settings(config, **({"data": data} if data is not None else {}), **flags)


@contextmanager
def registry_of(settings: Settings) -> Iterator[Registry]:
    """The registry that exists already. Raises UserError when nothing was made there yet."""
    from factory.core.errors import UserError
    from registry.store import Registry

    if not settings.registry and not (settings.data / "registry.db").is_file():
        raise UserError("--data", str(settings.data), "a data folder with a registry: `factory nightly` makes one")
    with Registry.open(settings.database_url, settings.data / "blobs") as registry:
        yield registry


def task_of(registry: Registry, reference: str, option: str = "TASK") -> Digest:
    """The digest of the task that a person names. Raises UserError when there is none, or more than one."""
    from factory.core.errors import NotFound, UserError

    try:
        return registry.resolve(reference)
    except NotFound:
        raise UserError(option, reference, "a digest, at least 8 digits of one, a name or an alias of a task") from None


def node_of(registry: Registry, reference: str, option: str = "TASK") -> Digest:
    """The digest of the task or policy version that a person names. Raises UserError."""
    from factory.core.errors import NotFound, UserError

    for find in (registry.resolve, lambda name: registry.policy(name).version.weights):
        try:
            return find(reference)
        except NotFound:
            continue
    raise UserError(option, reference, "a digest, at least 8 digits of one, a name or an alias of a task or a policy version")


def split_of(registry: Registry, name: str, option: str) -> str:
    """`name` where a sealed split has it. Raises UserError that lists the splits."""
    from factory.core.errors import UserError

    known = [split.name for split in registry.splits()]
    if name not in known:
        raise UserError(option, name, f"a sealed split: {' or '.join(known) or 'there is none'}")
    return name


def choice(kind: type[Any], value: str | None, option: str) -> Any:
    """A member of an enumeration by its value; None stays None. Raises UserError that lists the values."""
    from factory.core.errors import UserError

    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        raise UserError(option, value, " or ".join(member.value for member in kind)) from None
