"""One self-contained HTML page: no script, nothing fetched, readable on a phone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from factory.core.errors import UserError
from factory.report.html import NOTHING, STYLE, instant, percent, text
from factory.report.sections import learning, making, running

SECTIONS = {
    "funnel": ("Funnel", making.funnel),
    "rates": ("Pass rates", making.pass_rates),
    "training": ("Training", learning.training),
    "holdout": ("Holdout", learning.holdout),
    "gap": ("Verifiers", learning.verifier_gap),
    "costs": ("Costs", running.costs),
    "stages": ("Stage times", running.stages),
    "contamination": ("Contamination", making.contamination),
    "policies": ("Policies", learning.policies),
    "runs": ("Runs", running.runs),
}


def write_page(figures: dict[str, Any], path: Path) -> None:
    """Write the page of `collect.figures` to `path`, whole or not at all. Raises UserError when it cannot be written."""
    content = page(figures)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(content, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UserError("--out", str(path), f"a file that can be written ({error.strerror})") from None


def page(figures: dict[str, Any]) -> str:
    """The page as text; the same figures give the same page."""
    links = "".join(f'<a href="#{name}">{text(title)}</a>' for name, (title, _) in SECTIONS.items())
    body = "".join(write(figures) for _, write in SECTIONS.values())
    as_of = f"as of {instant(figures['as_of'])} UTC" if figures["as_of"] else "nothing is recorded yet"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>envfactory report</title><style>{STYLE}</style></head><body>"
        f'<header><h1>envfactory report</h1><p class="soft">Policy line {text(figures["line"])}, '
        f"split {text(figures['split'])}, {as_of}</p><nav>{links}</nav></header>"
        f'<main><div class="cards">{_cards(figures)}</div>{body}</main>'
        '<footer class="soft">Every figure is in <code>factory report --json</code>.</footer></body></html>\n'
    )


def _cards(figures: dict[str, Any]) -> str:
    totals = figures["totals"]
    cards = [
        (text(totals["accepted"]), f"accepted of {totals['tasks']} tasks"),
        (text(totals["frontier"]), f"on the frontier, of {totals['training_tasks']} training tasks"),
        (text(totals["holdout_tasks"]), "sealed holdout tasks"),
        (_gain(figures["training"]), "holdout pass rate before → after"),
        (text(totals["rollouts"]), "rollouts"),
        (text(totals["sampled_tokens"]), "sampled tokens"),
    ]
    return "".join(f'<div class="card"><b>{value}</b><span>{text(label)}</span></div>' for value, label in cards)


def _gain(training: list[dict[str, Any]]) -> str:
    """Of the newest training that ended."""
    ended = [run["holdout"]["all"] for run in training if run["holdout"]]
    return f"{percent(ended[-1]['before']['mean'])} → {percent(ended[-1]['after']['mean'])}" if ended else NOTHING
