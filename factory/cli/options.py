"""Options that commands share, and how the settings and the registry are opened from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from registry.access import Access

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

HeadOption = Annotated[
    str | None, typer.Option("--head", help="Digest of an audit entry that was noted earlier; it must be on the trail.")
]

MOST = 2**31 - 1
"""The largest count that an option takes: every database holds it."""

LISTED = 12
"""Most known values that a mistake is answered with."""


def output_file(path: Path, option: str) -> Path:
    """`path` where a file may be written: new, or in place of a regular one. Raises UserError."""
    from factory.core.errors import UserError

    try:
        right = path.name and path.parent.is_dir() and (path.is_file() or not path.exists())
    except (OSError, ValueError):  # a name that no file can have
        right = False
    if not right:
        raise UserError(option, str(path), "a file, new or to be replaced, in a folder that exists")
    if not os.access(path.parent, os.W_OK):
        raise UserError(option, str(path), "a file in a folder that can be written")
    return path


def settings_of(config: Path | None, data: Path | None, **flags: Any) -> Settings:
    """The settings with the flags that were given."""
    from factory.settings import load_settings

    return load_settings(config, **({"data": data} if data is not None else {}), **flags)


@contextmanager
def registry_of(settings: Settings, access: Access = Access.READ) -> Iterator[Registry]:
    """The registry that exists already. Raises UserError when nothing was made there yet, or `access` is not to be had."""
    from factory.core.errors import UserError
    from registry.store import Registry

    if not settings.registry and not (settings.data / "registry.db").is_file():
        raise UserError("--data", str(settings.data), "a data folder with a registry: `factory nightly` makes one")
    with Registry.open(settings.database_url, settings.data / "blobs", access=access) as registry:
        yield registry


def require_registry(settings: Settings) -> None:
    """Raise UserError unless there is a registry to work on: what only adds to one makes none."""
    with registry_of(settings, Access.WRITE):
        pass


def head_of(head: str | None) -> str | None:
    """A noted head. Raises UserError unless it is a digest."""
    from factory.core.digest import is_digest
    from factory.core.errors import UserError

    if head is not None and not is_digest(head):
        raise UserError("--head", head, "64 lower-case hexadecimal digits, as `factory tasks verify` prints them")
    return head


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


def one_of(value: str | None, known: Iterable[str], option: str, kind: str) -> str | None:
    """`value` where it is one of `known` or was not given. Raises UserError that lists what there is, the likely one last."""
    import difflib

    from factory.core.errors import UserError

    names = sorted(set(known))
    if value is None or value in names:
        return value
    close = difflib.get_close_matches(value, names, n=1)
    listed = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    meant = f"; did you mean {close[0]!r}?" if close else ""
    raise UserError(option, value, f"{kind}: {listed or 'there is none'}{meant}")


def line_of(registry: Registry, settings: Settings, line: str | None) -> str:
    """The policy line that was named, else the settings'. Raises UserError."""
    own = settings.policy.line
    found = one_of(line, {own, *registry.lines()}, "--line", "a policy line")
    return own if found is None else found


def split_of(registry: Registry, name: str, option: str) -> str:
    """`name` where a sealed split has it. Raises UserError that lists the splits."""
    one_of(name, (split.name for split in registry.splits()), option, "a sealed split")
    return name


def choice(kind: type[Any], value: str | None, option: str) -> Any:
    """A member of an enumeration by its value; None stays None. Raises UserError that lists the values."""
    found = one_of(value, (member.value for member in kind), option, "one of them")
    return None if found is None else kind(found)
