"""The page: one file that fetches nothing, runs nothing, and shows everything as text."""

from __future__ import annotations

import copy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from factory.core.errors import UserError
from factory.report.collect import figures
from factory.report.page import SECTIONS, page, write_page
from factory.settings import load_settings
from registry.store import Registry

VOID = {"meta", "link", "img", "br", "hr", "input", "path", "use", "rect"}
HOSTILE = "\"><script>alert('1')</script><img src=x onerror=alert(2)>$\\frac{1}{"


class Outline(HTMLParser):
    """Checks that every element is closed, and keeps what could load or run something."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def harmless(text: str) -> Outline:
    outline = Outline(text)
    assert not outline.tags & {"script", "img", "iframe", "object", "embed", "link", "form", "base"}
    for tag, name, value in outline.attributes:
        assert not name.startswith("on"), (tag, name, value)
        if name.endswith(("src", "href")):
            assert value.startswith("#"), (tag, name, value)
    assert "@import" not in text and "url(http" not in text
    return outline


def test_a_page_of_a_trained_registry(found: dict[str, Any]) -> None:
    outline = harmless(page(found))
    words = " ".join(outline.words)
    assert set(SECTIONS) <= set(outline.ids)
    assert found["training"][0]["run"] in words and "holdout-families" in words
    assert "100.0 % [100.0 %, 100.0 %]" in words
    assert words.count("Nothing was trained yet") == 0
    plots = page(found).count("<svg ")
    assert plots >= 9


def test_a_phone_can_read_it(found: dict[str, Any]) -> None:
    text = page(found)
    viewports = [value for tag, name, value in Outline(text).attributes if tag == "meta" and name == "content"]
    assert viewports == ["width=device-width, initial-scale=1"]
    assert "svg { width: 100%" in text and "overflow-x: auto" in text


def test_identifiers_are_unique_where_something_refers_to_them(found: dict[str, Any]) -> None:
    outline = Outline(page(found))
    links = {value[1:] for _, name, value in outline.attributes if name.endswith("href")}
    assert links <= set(outline.ids)
    sections = [name for name in outline.ids if name in SECTIONS]
    assert sorted(sections) == sorted(SECTIONS)


def test_the_same_figures_give_the_same_page(found: dict[str, Any]) -> None:
    assert page(found) == page(copy.deepcopy(found))


def hostile(value: Any, path: str = "") -> Any:
    """The same figures with every free text replaced; what code chooses by (instants, states) stays."""
    if isinstance(value, dict):
        return {name: hostile(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [hostile(item, path) for item in value]
    fixed = ("begun", "ended", "at", "as_of", "created_at", "flow", "state", "status", "filter", "stage")
    return HOSTILE if isinstance(value, str) and path not in fixed else value


def test_every_text_is_shown_as_text(found: dict[str, Any]) -> None:
    figures = hostile(found)
    figures["funnel"]["refused"] = [
        {"kind": HOSTILE, "status": "rejected", "filter": HOSTILE, "tasks": 1, "reasons": [{"reason": HOSTILE, "tasks": 1}]}
    ]
    figures["funnel"]["not_judged"] = [{"kind": HOSTILE, "fault": HOSTILE, "tasks": 1}]
    figures["funnel"]["projects"] = {HOSTILE: HOSTILE}
    counts = {"edits": 1, "valid": 0, "yield": 0.0, "fates": {HOSTILE: 1}}
    figures["funnel"]["yields"] = {
        "projects": [{"project": HOSTILE, "refused": HOSTILE, "seconds": 1.0, **counts}],
        "operators": [{"operator": HOSTILE, **counts}],
        "all": counts,
    }
    figures["runs"][0]["reason"] = HOSTILE
    figures["contamination"]["contamination"]["shown"] = [{"task": HOSTILE, "name": HOSTILE, "reason": HOSTILE}]
    outline = harmless(page(figures))
    assert sum(HOSTILE in words for words in outline.words) > 20


@pytest.mark.parametrize("state", ["empty", "without training"])
def test_what_is_not_there_is_said(state: str, tmp_path: Path, found: dict[str, Any]) -> None:
    if state == "empty":
        settings = load_settings(None, data=tmp_path)
        with Registry.open(settings.database_url, tmp_path / "blobs") as registry:
            told = figures(registry, settings)
    else:
        told = {**found, "training": [], "evaluations": [], "verifier_gaps": [], "runs": found["runs"][1:]}
    words = " ".join(harmless(page(told)).words)
    assert "Nothing was trained yet" in words and "was not evaluated yet" in words
    assert ("No candidate was made yet" in words) == (state == "empty")


def test_a_training_in_progress_has_a_page(found: dict[str, Any]) -> None:
    told = copy.deepcopy(found)
    (run,) = told["training"]
    run.update(state="running", before=None, after=None, holdout={}, steps=run["steps"][:1])
    told["runs"][0].update(state="running", ended=None, wall_seconds=None)
    harmless(page(told))
    run["steps"] = []
    harmless(page(told))


def test_it_is_written_whole_or_not_at_all(found: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "report.html"
    write_page(found, path)
    assert path.read_text(encoding="utf-8") == page(found)
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(UserError, match="--out"):
        write_page(found, path / "below-a-file.html")


def test_what_was_asked_for_and_not_generated_is_said(found: dict[str, Any]) -> None:
    told = copy.deepcopy(found)
    assert "not generated" not in page(told)
    told["funnel"]["kinds"]["terminal"]["asked"] += 3
    assert "left no candidate: 3 of terminal." in page(told)
