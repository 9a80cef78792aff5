"""Rows of SWE-smith and SWE-bench: what is read, what is refused, and that nothing is lost on the way."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
from pathlib import Path
from typing import Any

import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factory.core.errors import UserError
from registry.exchange import rows
from registry.exchange.rows import FORMATS, Reject, Row, parse, read_rows, write_rows
from registry.exchange.values import decoded, encoded

SMITH: dict[str, Any] = {
    "instance_id": "tkem__schedule.82a43db1.func_pm_ctrl_invert_if__abc",
    "repo": "swesmith/tkem__schedule.82a43db1",
    "patch": "diff --git a/x.py b/x.py\n",
    "FAIL_TO_PASS": ["tests/test_x.py::test_a[two words]"],
    "PASS_TO_PASS": ["tests/test_x.py::test_b"],
    "image_name": "swebench/swesmith.x86_64.tkem_1776_schedule",
    "problem_statement": "It fails.",
}
BENCH: dict[str, Any] = {
    "instance_id": "tkem__schedule-7",
    "repo": "tkem/schedule",
    "base_commit": "82a43db1",
    "patch": "diff --git a/x.py b/x.py\n",
    "test_patch": "",
    "problem_statement": "It fails.",
    "hints_text": None,
    "created_at": "2024-01-01T00:00:00Z",
    "version": "1.2",
    "FAIL_TO_PASS": '["tests/test_x.py::test_a"]',
    "PASS_TO_PASS": "[]",
}


def test_the_fields_of_both_formats_are_read() -> None:
    smith = parse(FORMATS["swesmith"], 1, SMITH)
    assert (smith.repo, smith.image_name) == (SMITH["repo"], SMITH["image_name"])
    assert smith.fail_to_pass == ("tests/test_x.py::test_a[two words]",)
    bench = parse(FORMATS["swebench"], 1, BENCH)
    assert (bench.base_commit, bench.fail_to_pass, bench.pass_to_pass) == ("82a43db1", ("tests/test_x.py::test_a",), ())


@pytest.mark.parametrize(
    ("form", "row", "change", "field"),
    [
        ("swesmith", SMITH, {"problem_statement": None}, "problem_statement"),
        ("swesmith", SMITH, {"problem_statement": " \n"}, "problem_statement"),
        ("swesmith", SMITH, {"patch": 3}, "patch"),
        ("swesmith", SMITH, {"patch": "a\0b"}, "patch"),
        ("swesmith", SMITH, {"repo": "\ud800"}, "repo"),
        ("swesmith", SMITH, {"image_name": []}, "image_name"),
        ("swesmith", SMITH, {"FAIL_TO_PASS": []}, "FAIL_TO_PASS"),
        ("swesmith", SMITH, {"FAIL_TO_PASS": "[1]"}, "FAIL_TO_PASS"),
        ("swesmith", SMITH, {"FAIL_TO_PASS": "["}, "FAIL_TO_PASS"),
        ("swesmith", SMITH, {"FAIL_TO_PASS": "[" * 100_000}, "FAIL_TO_PASS"),
        ("swesmith", SMITH, {"FAIL_TO_PASS": {"a": 1}}, "FAIL_TO_PASS"),
        ("swesmith", SMITH, {"FAIL_TO_PASS": ["a\0"]}, "FAIL_TO_PASS"),
        ("swesmith", SMITH, {"PASS_TO_PASS": SMITH["FAIL_TO_PASS"]}, "PASS_TO_PASS"),
        ("swebench", BENCH, {"base_commit": ""}, "base_commit"),
        ("swebench", BENCH, {"test_patch": ["x" * 10_000_000]}, "test_patch"),
    ],
)
def test_a_wrong_row_is_refused_in_one_short_line(form: str, row: dict[str, Any], change: dict[str, Any], field: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(FORMATS[form], 12, {**row, **change})
    assert caught.value.field == f"row 12: {field}"
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("name", [*SMITH])
def test_a_missing_field_is_named(name: str) -> None:
    without = {key: value for key, value in SMITH.items() if key != name}
    if name in ("image_name", "PASS_TO_PASS"):
        assert isinstance(parse(FORMATS["swesmith"], 1, without), Row)
        return
    with pytest.raises(UserError, match=name):
        parse(FORMATS["swesmith"], 1, without)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*SMITH, *BENCH, "further"]), JSON))
def test_any_row_is_read_or_refused_in_one_line(row: dict[str, Any]) -> None:
    for form in FORMATS.values():
        try:
            found = parse(form, 1, row)
        except UserError as error:
            assert "\n" not in str(error)
        else:
            assert found.values == row and found.fail_to_pass


NAMES = st.lists(st.text(min_size=1).filter(lambda text: "\0" not in text and text.isprintable()), max_size=4, unique=True)


@given(NAMES, st.booleans())
def test_names_of_tests_come_whole_from_lists_and_from_json_text(names: list[str], as_text: bool) -> None:
    fail = ["t.py::first", *(f"t.py::{name}" for name in names)]
    row = {**SMITH, "FAIL_TO_PASS": json.dumps(fail) if as_text else fail, "PASS_TO_PASS": None}
    assert parse(FORMATS["swesmith"], 1, row).fail_to_pass == tuple(dict.fromkeys(fail))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.decimals(allow_nan=False, allow_infinity=False),
)


@given(st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)))
def test_values_without_a_form_in_json_keep_their_type(value: Any) -> None:
    there = json.loads(json.dumps(encoded(value)))
    back = decoded(there)
    assert back == value and type(back) is type(value)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.text(), JSON, min_size=1), max_size=4), st.booleans())
def test_json_lines_give_every_row_back(tmp_path: Path, found: list[dict[str, Any]], compressed: bool) -> None:
    path = tmp_path / ("rows.jsonl.gz" if compressed else "rows.jsonl")
    write_rows(found, path)
    assert [row for _, row in read_rows(path)] == found


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON, min_size=1), max_size=4))
def test_parquet_gives_every_row_back_or_says_that_it_can_not(tmp_path: Path, found: list[dict[str, Any]]) -> None:
    path = tmp_path / "rows.parquet"
    names = {name for row in found for name in row}
    try:
        write_rows(found, path)
    except UserError as error:
        assert "JSON lines" in str(error) and not path.exists()
    else:
        assert [row for _, row in read_rows(path)] == [{name: row.get(name) for name in names} for row in found]
        path.unlink()


def test_a_parquet_file_of_another_writer_is_read(tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    pandas.DataFrame([{**SMITH, "score": 0.5, "when": datetime.date(2024, 5, 1), "cost": decimal.Decimal("1.50")}]).to_parquet(
        path
    )
    [(number, row)] = read_rows(path)
    assert number == 1 and isinstance(row, dict)
    assert row == {**SMITH, "score": 0.5, "when": datetime.date(2024, 5, 1), "cost": decimal.Decimal("1.50")}


def test_lines_that_are_no_rows_are_told_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LINE_BYTES", 1000)
    path = tmp_path / "rows.jsonl"
    lines = [b"{", b"[]", b"\xff\xfe", b'"' + b"x" * 5000 + b'"', b"", b'{"a": 1}', b"[" * 900]
    path.write_bytes(b"\n".join(lines))
    found = list(read_rows(path))
    assert [(number, row.reason if isinstance(row, Reject) else row) for number, row in found][1:2] == [
        (2, "a JSON list, not an object")
    ]
    assert [number for number, row in found if isinstance(row, Reject)] == [1, 2, 3, 4, 7]
    assert (6, {"a": 1}) in found
    assert all("\n" not in row.reason and len(row.reason) < 300 for _, row in found if isinstance(row, Reject))


@pytest.mark.parametrize("name", ["rows.csv", "rows", "absent.jsonl", "absent.parquet"])
def test_other_files_are_the_users_mistake(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError):
        list(read_rows(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "content"), [("a.parquet", b"PAR1"), ("a.jsonl.gz", b"no gzip"), ("b.jsonl.gz", gzip.compress(b"{}\n" * 99)[:20])]
)
def test_damaged_files_are_the_users_mistake(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        list(read_rows(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        write_rows([SMITH, BENCH], tmp_path / name)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
