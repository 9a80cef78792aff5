"""Beginning and resuming runs: the settings are kept with the run, so that a refusal can name what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from factory.core.errors import Conflict, UserError
from factory.report.records import SETTINGS
from factory.settings import Settings
from registry.runs import RunRow
from registry.store import Registry


def begin_run(registry: Registry, settings: Settings, flow: str, name: str, *, option: str) -> RunRow:
    """Begin or resume run `name` of `flow`.

    Raises UserError when it was begun with other settings: it names `option` (what a person may change instead), each
    setting that differs, and both values.
    """
    try:
        run = registry.begin_run(flow, name, settings.digest)
    except Conflict:
        held = registry.stages(f"{flow}/{name}").get(SETTINGS)
        changes = "those settings, which were not kept" if held is None else _changes(held.data, settings.deciding)
        raise UserError(option, name, f"another one, or the settings that it was begun with: {changes}") from None
    if SETTINGS not in registry.stages(run.id):
        registry.record_stage(run.id, SETTINGS, settings.deciding)
    return run


def _changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    old, new = dict(_flat(before)), dict(_flat(now))
    return ", ".join(
        f"{name} {_told(old, name)} (now {_told(new, name)})"
        for name in sorted(old.keys() | new.keys())
        if old.get(name, old) != new.get(name, old)  # `old` itself equals no setting's value
    )


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names of the leaves of nested tables; an empty table has none."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _told(values: dict[str, Any], name: str) -> str:
    return repr(values[name]) if name in values else "unset"
