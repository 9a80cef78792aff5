"""The list of all settings, generated from their classes: `python -m factory.cli.settings_reference > docs/settings.md`."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from factory.core.syntax import parse_python
from factory.flows.sections import ROOMS, room_config
from factory.settings import Settings

HEAD = """\
# Settings

Generated from the classes by `python -m factory.cli.settings_reference`. One file, `factory.toml` (or the one that `--config`
names), a table here is a table there; `configs/factory.toml` is a short one to begin with. An environment variable overrides
the file: `FACTORY_` and the name in capitals, `__` for each dot (`FACTORY_TRAIN__STEPS=7`; lists and tables as JSON). Flags
override both. `FACTORY_LOG` is the level of the log on stderr (`WARNING`): `INFO` and `DEBUG` also show what the libraries say.
A name that is no setting is refused, in one line.
"""
EXTRA = {
    "screen": [
        (
            "references",
            "list of strings",
            '["human-eval"]',
            "Evaluations that no task may overlap: `human-eval`, `name=file.jsonl`.",
        )
    ]
}
"""Fields of a table that are not of its class."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """One row: a name within its table, and what a person must know of it."""

    table: str
    name: str
    type: str
    default: str
    meaning: str


def settings() -> list[Setting]:
    """Every setting, table by table."""
    found: list[Setting] = []
    for name, info in Settings.model_fields.items():
        kind: Any = info.annotation
        if name in ROOMS:
            found += _fields(room_config(name), name)
            found += [Setting(name, *one) for one in EXTRA.get(name, [])]
        elif _is_table(kind):
            found += _fields(kind, name)
        else:
            found.append(Setting("", name, _type(kind), _value(info.default), _meaning(Settings, name)))
    return found


def reference() -> str:
    """The whole list as Markdown."""
    lines, table = [HEAD], None
    for one in settings():
        if one.table != table:
            lines += [""] if table is not None else []
            table = one.table
            title = f"## `[{table}]`" if table else "## At the top of the file"
            words = [_about(table)] if table else []
            lines += [
                title,
                "",
                *words,
                *([""] if words else []),
                "| setting | type | default | meaning |",
                "|---|---|---|---|",
            ]
        cells = (f"`{one.name}`", one.type, f"`{one.default}`" if one.default else "", one.meaning)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _fields(config: type[Any], table: str, base: Any = None) -> Iterator[Setting]:
    """A class's own fields, then those of nested tables with the defaults that they have in that place."""
    hints = typing.get_type_hints(config)
    nested: list[tuple[type[Any], str, Any]] = []
    for name, default in _defaults(config, base):
        inner = next((part for part in (hints[name], *typing.get_args(hints[name])) if _is_table(part)), None)
        if inner is not None:
            nested.append((inner, name, default))
        else:
            yield Setting(table, name, _type(hints[name]), _value(default), _meaning(config, name))
    for inner, name, default in nested:
        yield from _fields(inner, f"{table}.{name}", default)


def _defaults(config: type[Any], base: Any) -> Iterator[tuple[str, Any]]:
    if issubclass(config, BaseModel):
        for name, info in config.model_fields.items():
            yield name, info.default if base is None else getattr(base, name)
        return
    for field in dataclasses.fields(config):
        factory = field.default_factory
        yield field.name, getattr(base, field.name) if base is not None else factory() if callable(factory) else field.default


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and (dataclasses.is_dataclass(annotation) or issubclass(annotation, BaseModel))


def _about(table: str) -> str:
    """The first sentence of the class that the table becomes."""
    first, *rest = table.split(".")
    config: Any = room_config(first) if first in ROOMS else Settings.model_fields[first].annotation
    for name in rest:
        hint = typing.get_type_hints(config)[name]
        config = next(part for part in (hint, *typing.get_args(hint)) if _is_table(part))
    return " ".join((inspect.getdoc(config) or "").split("\n\n")[0].split())


def _meaning(config: type[Any], name: str) -> str:
    """The text under a field, of the nearest class that has one; TOML has no None, it leaves out."""
    found = next((texts[name] for owner in config.__mro__ if name in (texts := _texts(owner))), "")
    return re.sub(r"\bNone\b", "unset", found)


@cache
def _texts(owner: type[Any]) -> dict[str, str]:
    """Texts that stand under the fields of a class, by field."""
    if owner.__module__ in ("builtins", "abc", "typing") or owner.__module__.startswith("pydantic"):
        return {}
    (node,) = parse_python(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(node, ast.ClassDef)
    texts = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        documented = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and documented:
            texts[field.target.id] = " ".join(str(text.value.value).split())  # type: ignore[attr-defined]
    return texts


def _type(annotation: Any) -> str:
    """A type in the words of TOML."""
    arguments = [part for part in typing.get_args(annotation) if part is not type(None)]
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return " or ".join(f"`{value!r}`".replace("'", '"') for value in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}s"
    if len(arguments) == 1:  # with None: it may be left out
        return _type(arguments[0])
    return {str: "string", int: "integer", float: "number", bool: "boolean", Path: "path"}.get(annotation, str(annotation))


def _value(value: Any) -> str:
    """A default as TOML; empty where leaving it out is all that says it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | Path):
        return f'"{value}"'
    if isinstance(value, tuple | list):
        return f"[{', '.join(_value(item) for item in value)}]"
    return re.sub(r"(\d)(?=(\d{3})+$)", r"\1_", str(value)) if isinstance(value, int) and abs(value) > 9999 else str(value)


if __name__ == "__main__":
    sys.stdout.write(reference())
