"""Checks the SQLite database that an agent left behind, without ever writing to it.

What is opened is a copy in the scratch folder, read-only and immutable, by a child process with its own
limits, under an authorizer that allows nothing but reading tables and views. A view is also evaluated on
further databases of the bundle, which the agent never saw: its stored text, which is data here, is put into
a fresh connection to each of them. Whatever stands in the file, the answer is a failed check.

The specification:

    view     "asked": one check for each asked-for step, one for views on other data, and one for the rest;
             "whole": one check each for the objects, the tables' rows, what views show, and the file's health
    objects  {name: object}, all that the database should hold; an object has `type` (table, view), `rows`, for a
             table `sql` and what the library should say of it (`columns`, `indexes`, `references`, as
             `database_reader` has them), for a view `columns` (null: any name) and `ordered`
    steps    [{name, objects}], the names that each step of the request is about
    others   [{file, rows: {view: rows}}], what each view must show on another database of the bundle
"""

from __future__ import annotations

import database_reader

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing`, `pathlib` and `collections` take longer to import than most databases to check
    from typing import Any

HELPERS = ("database_reader",)
DETAIL = 300
"""Longest detail, characters."""


def check(spec: dict[str, Any], submission: str, bundle: str, scratch: str) -> list[dict[str, str]]:
    """Compare the database below `submission` with the specification; a list of {name, state, detail}."""
    copied = f"{scratch}/submitted.db"
    fault = database_reader.copy(submission, copied)
    if not fault:
        others = [f"{bundle}/{other['file']}" for other in spec["others"]]
        report = database_reader.in_child(database_reader.read, spec, copied, others)
        fault = report["fault"]
    if fault:
        report = {"fault": fault, "objects": {}, "others": [{} for _ in spec["others"]], "health": fault}
    return _VIEWS[spec["view"]](spec, report)


def _result(name: str, faults: list[str]) -> dict[str, str]:
    return {"name": name, "state": "failed" if faults else "passed", "detail": "; ".join(faults)[:DETAIL]}


def _asked(spec: dict[str, Any], report: dict[str, Any]) -> list[dict[str, str]]:
    expected, found = spec["objects"], report["objects"]
    asked = {name for step in spec["steps"] for name in step["objects"]}
    results = []
    for step in spec["steps"]:
        faults = [fault for name in step["objects"] for fault in _object_faults(name, expected.get(name), found.get(name))]
        results.append(_result(step["name"], _stopped(report) + faults))
    if spec["others"]:
        results.append(_result("views on other data", _other_faults(spec, report)))
    rest = [fault for name in expected if name not in asked for fault in _object_faults(name, expected[name], found.get(name))]
    rest += [f"{name!a} is too many" for name in sorted(found) if name not in expected and name not in asked]
    results.append(_result("nothing else changed", _stopped(report) + rest))
    return results


def _whole(spec: dict[str, Any], report: dict[str, Any]) -> list[dict[str, str]]:
    expected, found = spec["objects"], report["objects"]
    shapes = [f"{name!a} is missing" for name in sorted(expected.keys() - found.keys())]
    shapes += [f"{name!a} is too many" for name in sorted(found.keys() - expected.keys())]
    contents: dict[str, list[str]] = {"table": [], "view": []}
    for name in sorted(expected.keys() & found.keys()):
        wrong = _shape_fault(expected[name], found[name])
        if wrong:
            shapes.append(f"{name!a} {wrong}")
        elif _rows_fault(expected[name], found[name]):
            contents[expected[name]["type"]].append(f"{name!a} {_rows_fault(expected[name], found[name])}")
    short = ["objects are not as they should be"] if shapes else []
    return [
        _result("objects", _stopped(report) + shapes),
        _result("rows", _stopped(report) + short + contents["table"]),
        _result("views", _stopped(report) + short + contents["view"] + _other_faults(spec, report)),
        _result("health", [report["health"]] if report["health"] else []),
    ]


_VIEWS = {"asked": _asked, "whole": _whole}


def _stopped(report: dict[str, Any]) -> list[str]:
    return [report["fault"]] if report["fault"] else []


def _object_faults(name: str, expected: dict[str, Any] | None, found: dict[str, Any] | None) -> list[str]:
    """What is wrong with one object, told in words; nothing when it is as expected (`None`: absent)."""
    if expected is None:
        return [] if found is None else [f"{name!a} is still there"]
    if found is None:
        return [f"{name!a} is not there"]
    fault = _shape_fault(expected, found) or _rows_fault(expected, found)
    return [f"{name!a} {fault}"] if fault else []


def _shape_fault(expected: dict[str, Any], found: dict[str, Any]) -> str:
    if found["type"] != expected["type"]:
        return f"is a {found['type']}, not a {expected['type']}"
    if expected["type"] == "table":
        return "" if found["as_defined"] else "is defined in another way"
    if found.get("fault"):
        return str(found["fault"])
    columns = found["columns"]
    fits = len(columns) == len(expected["columns"]) and all(
        want in (None, have.lower()) for want, have in zip(expected["columns"], columns, strict=True)
    )
    return "" if fits else "shows other columns"


def _rows_fault(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """Rows are multisets of typed values, lists where the request asks for an order."""
    if found.get("fault"):
        return str(found["fault"])
    want, have = _typed(expected["rows"]), [tuple(map(tuple, row)) for row in found["rows"]]
    if expected.get("ordered"):
        return "" if want == have else "has other rows or another order"
    return "" if _counted(want) == _counted(have) else "has other rows"


def _counted(rows: list[tuple[tuple[str, Any], ...]]) -> dict[tuple[tuple[str, Any], ...], int]:
    counts: dict[tuple[tuple[str, Any], ...], int] = {}
    for row in rows:
        counts[row] = counts.get(row, 0) + 1
    return counts


def _typed(rows: list[list[Any]]) -> list[tuple[tuple[str, Any], ...]]:
    return [tuple((_kind(value), value) for value in row) for row in rows]


def _kind(value: object) -> str:
    return type(value).__name__


def _other_faults(spec: dict[str, Any], report: dict[str, Any]) -> list[str]:
    faults = []
    for number, (other, shown) in enumerate(zip(spec["others"], report["others"], strict=True)):
        for view, rows in other["rows"].items():
            found = shown.get(view, {"fault": "is not there"})
            fault = _shape_fault(spec["objects"][view], found | {"type": "view"}) if not found.get("fault") else found["fault"]
            fault = fault or _rows_fault(spec["objects"][view] | {"rows": rows}, found)
            if fault:
                faults.append(f"{view!a} {fault} on database {number + 1}")
    return faults
