"""A certificate that can fail."""

from __future__ import annotations

import inspect
import json
import statistics
from typing import Any

import pytest

from factory.core.digest import digest_of
from factory.core.errors import UserError
from filters.contamination.audit import AuditConfig, audit
from filters.contamination.planted import DISGUISES, negatives, positives
from filters.contamination.references import ReferenceSet
from filters.contamination.screen import ContaminationConfig

CLEAN = [(digest_of("code"), inspect.getsource(statistics.quantiles)), (digest_of("short"), "cp tivu kuma")]


@pytest.fixture(scope="module")
def report(evaluation: ReferenceSet) -> dict[str, object]:
    return audit(CLEAN, [evaluation], config=AuditConfig(per_kind=164))


def test_every_kind_is_found(report: dict[str, dict[str, dict[str, float]]]) -> None:
    recalls = {kind: result["recall"] for kind, result in report["planted"].items()}
    assert recalls.keys() == DISGUISES.keys()
    assert min(recalls[kind] for kind in recalls if kind != "renamed and edited") == 1.0
    assert recalls["renamed and edited"] >= 0.9
    assert all(
        result["found"] + result["too_short_to_judge"] >= 0.9 * result["planted"] for result in report["planted"].values()
    )


def test_recall_is_told_for_every_length_and_no_short_text_is_missed_unsaid(
    report: dict[str, dict[str, dict[str, Any]]],
) -> None:
    for result in report["planted"].values():
        lengths = result["by_length"]
        assert lengths.keys() == {"short", "medium", "long"}
        for name in ("planted", "found", "too_short_to_judge"):
            assert sum(part[name] for part in lengths.values()) == result[name]
        assert lengths["short"]["found"] + lengths["short"]["too_short_to_judge"] == lengths["short"]["planted"]
    rewrapped = report["planted"]["rewrapped"]["by_length"]["short"]
    assert rewrapped["found"] == rewrapped["planted"] > 10


def test_nothing_is_found_where_nothing_is(report: dict[str, dict[str, dict[str, float]]]) -> None:
    assert {kind: result["matched"] for kind, result in report["negatives"].items()} == {
        "library code": 0,
        "library prose": 0,
        "shuffled words": 0,
    }


def test_a_clean_report_certifies_and_lists_what_it_could_not_judge(report: dict[str, object]) -> None:
    assert report["certified"] is True and report["faults"] == []
    assert report["tasks"]["screened"] == 2 and report["tasks"]["matched"] == []  # type: ignore[index]
    assert report["tasks"]["too_short_to_judge"] == [digest_of("short")]  # type: ignore[index]
    assert len(report["references_too_short_to_judge"]) == 41  # type: ignore[arg-type]
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_lsh_alone_would_miss_most_of_what_is_embedded(report: dict[str, dict[str, dict[str, int]]]) -> None:
    embedded = report["planted"]["embedded in prose"]
    assert embedded["found_by_lsh"] < 0.6 * embedded["found"]


def test_a_contaminated_task_fails_the_audit(evaluation: ReferenceSet) -> None:
    items = [*CLEAN, (digest_of("bad"), evaluation.items[2].text)]
    found = audit(items, [evaluation], config=AuditConfig(per_kind=40))
    assert found["certified"] is False and found["faults"] == ["1 of 3 tasks match a reference"]
    assert [match["task"] for match in found["tasks"]["matched"]] == [digest_of("bad")]


def test_a_screen_that_sees_too_little_cannot_certify(evaluation: ReferenceSet) -> None:
    blind = ContaminationConfig(minimum_words=150)
    found = audit(CLEAN, [evaluation], screen=blind, config=AuditConfig(per_kind=40))
    assert found["certified"] is False
    assert any(fault.startswith("planted, embedded in prose") for fault in found["faults"])
    deaf = ContaminationConfig(words_contained=1.1, words=1.1)
    found = audit(CLEAN, [evaluation], screen=deaf, config=AuditConfig(per_kind=40))
    assert any("found 0 of" in fault for fault in found["faults"])


def test_a_screen_that_cries_wolf_cannot_certify(evaluation: ReferenceSet) -> None:
    loose = ContaminationConfig(code=0.01, code_contained=0.05, code_review=0.01)
    found = audit([], [evaluation], screen=loose, config=AuditConfig(per_kind=40))
    assert any(fault.startswith("negatives, library code") for fault in found["faults"])


def test_an_audit_of_nothing_certifies_nothing(evaluation: ReferenceSet) -> None:
    found = audit([], [evaluation], config=AuditConfig(per_kind=5))
    assert found["certified"] is False
    assert "no task was screened, so there is nothing to certify" in found["faults"]


def test_an_audit_against_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="at least one reference set"):
        audit(CLEAN, [])


def test_plants_are_drawn_from_the_seed(evaluation: ReferenceSet) -> None:
    first, again, other = (positives([evaluation], seed=seed, per_kind=5) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 5 * len(DISGUISES)
    assert negatives([evaluation], seed=1, per_kind=5) != negatives([evaluation], seed=2, per_kind=5)
