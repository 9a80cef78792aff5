"""The two specifications of a database task's verifiers, from its states on several databases."""

from __future__ import annotations

from collections.abc import Sequence

from factory.core.digest import Json
from generators.composition import Composition
from generators.database.data import Database
from generators.database.model import State, Table, View, definition, described
from generators.skill import changed


def asked(composition: Composition, own: Database, others: Sequence[Database]) -> dict[str, Json]:
    """The verifier for training: each step's own objects, views on other data, and that nothing else changed."""
    steps: list[Json] = [
        {"name": f"{number} {step.skill.name}", "objects": list(changed(own.states[number - 1], own.states[number]))}
        for number, step in enumerate(composition.steps, start=1)
    ]
    return {"view": "asked", "objects": _objects(own.states[-1]), "steps": steps, "others": _others(others)}


def whole(own: Database, others: Sequence[Database]) -> dict[str, Json]:
    """The held-out verifier: the database as a whole, blind to the request, and views on yet other data."""
    return {"view": "whole", "objects": _objects(own.states[-1]), "others": _others(others)}


def files(others: Sequence[Database]) -> dict[str, bytes]:
    """The other databases as further files of the bundle; none where no view is judged on them."""
    return {f"others/{index}.db": other.data for index, other in enumerate(others) if _views(other.states[-1])}


def _others(others: Sequence[Database]) -> list[Json]:
    return [
        {
            "file": f"files/others/{index}.db",
            "rows": {name: _rows(view.rows) for name, view in _views(other.states[-1]).items()},
        }
        for index, other in enumerate(others)
        if _views(other.states[-1])
    ]


def _views(state: State) -> dict[str, View]:
    return {name: thing for name, thing in state.items() if isinstance(thing, View)}


def _objects(state: State) -> dict[str, Json]:
    return {name: _table(name, thing) if isinstance(thing, Table) else _view(thing) for name, thing in state.items()}


def _table(name: str, table: Table) -> Json:
    columns: list[Json] = [list(column) for column in described(table)]
    shape: dict[str, Json] = {"columns": columns, "indexes": [], "references": []}
    return {"type": "table", "sql": definition(name, table), **shape, "rows": _rows(table.rows)}


def _view(view: View) -> Json:
    return {"type": "view", "columns": list(view.columns), "ordered": view.ordered, "rows": _rows(view.rows)}


def _rows(rows: Sequence[Sequence[Json]]) -> list[Json]:
    return [list(row) for row in rows]
