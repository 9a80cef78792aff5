"""A certificate that can fail."""

from __future__ import annotations

import inspect
import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from factory.core.blobs import MemoryBlobs, put_json
from factory.core.digest import digest_of
from factory.core.errors import NotFound, UserError
from factory.core.task import Candidate, VerifierSpec
from filters.contamination import reading, shipped
from filters.contamination.audit import AuditConfig, audit
from filters.contamination.planted import DISGUISES, SHORT, negatives, positives
from filters.contamination.planting import PLACES
from filters.contamination.reading import Content
from filters.contamination.references import ReferenceSet
from filters.contamination.screen import ContaminationConfig
from filters.contamination.survey import SHOWN, Item
from tests.filters.tasks import shipping

BLOBS = MemoryBlobs()


def item(name: str, **content: Any) -> Item:
    """An audited task of this content, named by the digest of `name`."""
    return digest_of(name), partial(shipping, BLOBS, **content)


CLEAN = [item("code", text=inspect.getsource(statistics.quantiles)), item("short", text="cp tivu kuma", instruction="Do.")]
HALF = AuditConfig(per_kind=20, per_place=5, judged_floor=0.5)


def gone() -> Candidate:
    raise NotFound("no blob abc")


def unreadable() -> Candidate:
    raise PermissionError(13, "Permission denied", "blobs/ab")


def audited(items: Sequence[Item], references: Sequence[ReferenceSet], **how: Any) -> dict[str, Any]:
    return audit(items, BLOBS, references, **how)


@pytest.fixture(scope="module")
def report(evaluation: ReferenceSet) -> dict[str, object]:
    return audited(CLEAN, [evaluation], config=AuditConfig(per_kind=164, judged_floor=0.5))


def test_every_kind_is_found(report: dict[str, dict[str, dict[str, float]]]) -> None:
    recalls = {kind: result["recall"] for kind, result in report["planted"].items()}
    assert recalls.keys() == {*DISGUISES, SHORT}
    assert min(recalls[kind] for kind in recalls if kind != "renamed and edited") == 1.0
    assert recalls["renamed and edited"] >= 0.9
    assert all(
        result["found"] + result["too_short_to_judge"] >= 0.9 * result["planted"] for result in report["planted"].values()
    )


def test_recall_is_told_for_every_length_and_no_short_text_is_missed_unsaid(
    report: dict[str, dict[str, dict[str, Any]]],
) -> None:
    for kind, result in report["planted"].items():
        lengths = result["by_length"]
        assert lengths.keys() == ({"short"} if kind == SHORT else {"short", "medium", "long"})
        for name in ("planted", "found", "too_short_to_judge"):
            assert sum(part[name] for part in lengths.values()) == result[name]
        assert lengths["short"]["found"] + lengths["short"]["too_short_to_judge"] == lengths["short"]["planted"]
    rewrapped = report["planted"]["rewrapped"]["by_length"]["short"]
    assert rewrapped["found"] == rewrapped["planted"] > 10


def test_what_is_planted_in_files_is_found_in_every_place(report: dict[str, dict[str, dict[str, Any]]]) -> None:
    assert report["planted_in_files"].keys() == PLACES.keys()
    for result in report["planted_in_files"].values():
        assert result["by_kind"].keys() == {*DISGUISES, SHORT}
        assert result["planted"] == 20 * (len(DISGUISES) + 1)
        assert result["recall"] > 0.98
        short = result["by_kind"][SHORT]
        assert short["found"] == short["planted"] == 20 and short["too_short_to_judge"] == 0


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
    function = evaluation.items[2].text
    items = [
        *CLEAN,
        item("bad", text=function),
        item("hidden", files={"docs/notes.txt": f"Some words.\n\n{function}\n\nMore."}),
    ]
    found = audited(items, [evaluation], config=HALF)
    assert found["certified"] is False and found["faults"] == ["2 of 4 tasks match a reference"]
    assert [(match["task"], match["in"]) for match in found["tasks"]["matched"]] == [
        (digest_of("bad"), "text"),
        (digest_of("hidden"), "files/docs/notes.txt"),
    ]


def test_a_screen_that_reads_no_files_cannot_certify(evaluation: ReferenceSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are found as before; only the way through files is broken."""
    monkeypatch.setattr(shipped, "read", lambda data, name: Content())
    found = audited(CLEAN, [evaluation], config=HALF)
    assert found["certified"] is False
    assert [fault.split(",")[1].split(":")[0].strip() for fault in found["faults"]] == list(PLACES)
    assert all("found 0 of" in fault for fault in found["faults"])


@pytest.mark.parametrize(
    ("reader", "place"),
    [("databases", "row of a database"), ("strings", "module of a repository"), ("notations", "file of data")],
)
def test_each_way_of_reading_is_needed_by_its_place(
    reader: str, place: str, evaluation: ReferenceSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reader == "databases":
        monkeypatch.setattr(reading, "text_values", lambda data: ([], [], 0))
    elif reader == "strings":
        monkeypatch.setattr(reading, "_any", lambda text: iter(()))
    else:
        monkeypatch.setattr(reading, "_READERS", {})
    found = audited(CLEAN, [evaluation], config=HALF)
    assert any(place in fault for fault in found["faults"])


def test_a_task_that_cannot_be_read_does_not_stop_the_audit_and_is_not_certified(evaluation: ReferenceSet) -> None:
    no_tree = shipping(BLOBS)
    no_tree = replace(no_tree, task=replace(no_tree.task, verifier=VerifierSpec(bundle=put_json(BLOBS, {"no": "tree"}))))
    lost = replace(no_tree, task=replace(no_tree.task, solution=digest_of("lost")))
    items = [(digest_of("gone"), gone), (digest_of("odd"), lambda: no_tree), (digest_of("lost"), lambda: lost), *CLEAN]
    items.append((digest_of("unreadable"), unreadable))
    found = audited(items, [evaluation], config=HALF)
    assert found["tasks"]["screened"] == 2 and found["tasks"]["counts"]["not_screened"] == 4
    assert [one["task"] for one in found["tasks"]["not_screened"]] == [
        digest_of(name) for name in ("gone", "odd", "lost", "unreadable")
    ]
    assert found["tasks"]["not_screened"][1]["fault"].startswith("InvalidTask: the tree of verifier")
    name = digest_of("gone")[:12]
    assert found["faults"] == [f"4 of 6 tasks could not be screened, {name} for one: NotFound: no blob abc"]


def test_too_many_tasks_that_only_exact_forms_could_compare_fail_the_audit(evaluation: ReferenceSet) -> None:
    found = audited(CLEAN, [evaluation], config=replace(HALF, judged_floor=0.51))
    assert found["tasks"]["judged_share"] == 0.5
    assert found["faults"] == ["1 of 2 tasks are compared by exact forms only; at least 0.51 must be by more"]


def test_files_make_a_short_task_long_enough_and_what_was_not_read_is_listed(evaluation: ReferenceSet) -> None:
    words = {f"file{number}": f"word{number} word{number + 1} word{number + 2}" for number in range(6)}
    files = {**words, "logo.png": b"\x89PNG\r\n\x1a\n\0\0", "old.zip": b"PK\x03\x04rest"}
    found = audited([item("files", text="cp a b", files=files)], [evaluation], config=HALF)["tasks"]
    assert found["judged_share"] == 1.0 and found["judged"] == {"words": 1}
    assert found["counts"]["too_short_without_files"] == 1 and found["files"] == {"files": 6}
    assert [(one["in"], one["why"], one["files"]) for one in found["unread_files"]] == [
        ("files", "archive or compressed", 1),
        ("files", "binary", 1),
    ]
    assert [one["file"] for one in found["unread"]] == ["files/logo.png", "files/old.zip"]


def test_lists_are_bounded_and_counts_are_not(evaluation: ReferenceSet) -> None:
    items = [item(str(number), text=evaluation.items[0].text) for number in range(30)] + [(digest_of("x"), gone)] * 30
    found = audited(items, [evaluation], config=AuditConfig(per_kind=5, per_place=1))["tasks"]
    assert found["counts"]["matched"] == found["counts"]["not_screened"] == 30
    assert len(found["matched"]) == len(found["not_screened"]) == SHOWN < 30


def test_a_screen_that_sees_too_little_cannot_certify(evaluation: ReferenceSet) -> None:
    blind = ContaminationConfig(minimum_words=150)
    found = audited(CLEAN, [evaluation], screen=blind, config=HALF)
    assert found["certified"] is False
    assert any(fault.startswith("planted, embedded in prose") for fault in found["faults"])
    deaf = ContaminationConfig(words_contained=1.1, words=1.1)
    found = audited(CLEAN, [evaluation], screen=deaf, config=HALF)
    assert any("found 0 of" in fault for fault in found["faults"])


def test_a_screen_that_cries_wolf_cannot_certify(evaluation: ReferenceSet) -> None:
    loose = ContaminationConfig(code=0.01, code_contained=0.05, code_review=0.01)
    found = audited([], [evaluation], screen=loose, config=HALF)
    assert any(fault.startswith("negatives, library code") for fault in found["faults"])


def test_an_audit_of_nothing_certifies_nothing(evaluation: ReferenceSet) -> None:
    found = audited([], [evaluation], config=AuditConfig(per_kind=5, per_place=1))
    assert found["certified"] is False
    assert "no task was screened, so there is nothing to certify" in found["faults"]


def test_an_audit_against_nothing_is_refused() -> None:
    with pytest.raises(UserError, match=r"screen\.references: .*at least one reference set"):
        audited(CLEAN, [])


def test_plants_are_drawn_from_the_seed(evaluation: ReferenceSet) -> None:
    first, again, other = (positives([evaluation], seed=seed, per_kind=5) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 5 * len(DISGUISES)
    assert negatives([evaluation], seed=1, per_kind=5) != negatives([evaluation], seed=2, per_kind=5)
