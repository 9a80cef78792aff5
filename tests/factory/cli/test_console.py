"""What people are shown of a record: a field a line, long lists cut with their length."""

from __future__ import annotations

import pytest

from factory.cli.console import emit_record


def test_a_record_is_a_field_a_line_and_a_long_list_says_how_long_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    emit_record({"name": "one", "interval": [0.25, 0.5], "none": [], "checks": {"passed": [f"t{n}" for n in range(1, 13)]}})
    assert capsys.readouterr().out == (
        "name: one\ninterval: 0.25 0.5\nnone: -\nchecks:\n  passed: t1 t2 t3 t4 t5 t6 t7 t8 ... (12 in all)\n"
    )
