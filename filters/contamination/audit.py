"""The contamination audit: what the screen found in the tasks, and how far its silence can be trusted.

A certificate is worth what it could have found: planted positives give recall by kind and length, as texts and inside
the files of tasks, planted negatives the rate of false alarms. Below a floor, or where tasks could not be screened or
were too short for it, the certificate fails, whatever the tasks look like.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from factory.core.blobs import BlobStore
from factory.core.errors import UserError
from factory.core.statistics import wilson
from filters.contamination.recall import false_alarms, recall_in_files, recall_of_texts
from filters.contamination.references import ReferenceSet
from filters.contamination.screen import ContaminationConfig, ContaminationScreen
from filters.contamination.shipped import TaskScreen
from filters.contamination.survey import Item, survey


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """What an audit plants and what it must find."""

    seed: int = 0
    per_kind: int = 100
    """Most planted texts of each kind for each reference set."""
    per_place: int = 20
    """The same, planted inside files, for each place."""
    recall_floor: float = 0.9
    """Least recall of every kind, and of every kind in every place, over the planted items that are long enough to judge."""
    coverage_floor: float = 0.75
    """Least share of the planted items of every kind that are long enough to judge, or found by an exact form."""
    judged_floor: float = 0.95
    """Least share of the tasks that are long enough, with all that they ship, to be compared by more than exact forms.
    Of the 686 tasks of a demo 151 were by their text or instruction alone, and all with solution and files."""
    false_alarms: float = 0.02
    """Most share of planted negatives of a kind that may match."""


def audit(
    items: Iterable[Item],
    blobs: BlobStore,
    references: Sequence[ReferenceSet],
    *,
    screen: ContaminationConfig | None = None,
    config: AuditConfig | None = None,
) -> dict[str, Any]:
    """JSON: findings in `items` (digest, loader of the candidate), recall on planted positives, false alarms, and whether it
    all certifies. A task that cannot be loaded or read is listed and not certified.

    Raises UserError without references: nothing would be compared with nothing.
    """
    if not references:
        raise UserError("screen.references", [], "at least one reference set")
    config = config or AuditConfig()
    built = ContaminationScreen(references, screen)
    planted = recall_of_texts(built, seed=config.seed, per_kind=config.per_kind)
    places = recall_in_files(built, seed=config.seed, per_kind=config.per_place)
    alarms = false_alarms(built, seed=config.seed, per_kind=config.per_kind)
    against = TaskScreen(built, blobs)
    tasks = survey(against, items)
    faults = [*_planted_faults(planted, config), *_place_faults(places, config)]
    faults += [*_alarm_faults(alarms, config), *_task_faults(tasks, config)]
    return {
        "certified": not faults,
        "faults": faults,
        "tasks": tasks,
        "planted": planted,
        "planted_in_files": places,
        "negatives": alarms,
        "references": [
            {"name": found.name, "digest": found.digest, "problems": found.problems, "items": len(found.items)}
            for found in built.references
        ],
        "references_too_short_to_judge": list(built.too_short),
        "indexed": built.sizes(),
        "screen": against.digest,
        "rule": against.rule,
        "config": asdict(config),
    }


def _planted_faults(planted: dict[str, Any], config: AuditConfig) -> Iterable[str]:
    """Why the certificate fails, one line each: where chance (95 %) does not explain what is short of the rule."""
    for kind, result in planted.items():
        total, judged = result["planted"], result["planted"] - result["too_short_to_judge"]
        if not judged or wilson(result["found"], judged).high < config.recall_floor:
            yield f"planted, {kind}: found {result['found']} of {judged} long enough to judge, under {config.recall_floor}"
        if wilson(judged, total).high < config.coverage_floor:
            yield f"planted, {kind}: {judged} of {total} are long enough to judge, under {config.coverage_floor}"
    if not planted:
        yield "nothing was planted, so nothing shows what the screen would find"


def _place_faults(places: dict[str, Any], config: AuditConfig) -> Iterable[str]:
    for place, results in places.items():
        judged = results["planted"] - results["too_short_to_judge"]
        if not judged or wilson(results["found"], judged).high < config.recall_floor:
            yield f"planted, {place}: found {results['found']} of {judged} long enough to judge, under {config.recall_floor}"
            continue
        for fault in _planted_faults(results["by_kind"], config):
            yield f"{fault}, in {place}"


def _alarm_faults(alarms: dict[str, Any], config: AuditConfig) -> Iterable[str]:
    for kind, result in alarms.items():
        if wilson(result["matched"], result["planted"]).low > config.false_alarms:
            yield f"negatives, {kind}: {result['matched']} of {result['planted']} match, over {config.false_alarms}"


def _task_faults(tasks: dict[str, Any], config: AuditConfig) -> Iterable[str]:
    screened, counts = tasks["screened"], tasks["counts"]
    if not screened:
        yield "no task was screened, so there is nothing to certify"
    if counts["matched"]:
        yield f"{counts['matched']} of {screened} tasks match a reference"
    if missing := counts["not_screened"]:
        first = tasks["not_screened"][0]
        yield f"{missing} of {screened + missing} tasks could not be screened, {first['task'][:12]} for one: {first['fault']}"
    if screened and tasks["judged_share"] < config.judged_floor:
        short = counts["too_short_to_judge"]
        yield f"{short} of {screened} tasks are compared by exact forms only; at least {config.judged_floor} must be by more"
