"""The contamination audit: what the screen found in the tasks, and how far its silence can be trusted.

A certificate is worth what it could have found: planted positives give recall by kind and length, planted
negatives the rate of false alarms. Below a floor the certificate fails, whatever the tasks look like.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from factory.core.digest import Digest
from factory.core.errors import UserError
from factory.core.statistics import wilson
from filters.contamination.planted import LENGTHS, Plant, negatives, positives
from filters.contamination.references import ReferenceSet
from filters.contamination.screen import ContaminationConfig, ContaminationScreen, Match


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """What an audit plants and what it must find."""

    seed: int = 0
    per_kind: int = 100
    """Most planted texts of each kind for each reference set."""
    recall_floor: float = 0.9
    """Least recall of every kind, over the planted items that are long enough to judge."""
    coverage_floor: float = 0.75
    """Least share of the planted items of every kind that are long enough to judge, or found by an exact form."""
    false_alarms: float = 0.02
    """Most share of planted negatives of a kind that may match."""


def audit(
    items: Iterable[tuple[Digest, str]],
    references: Sequence[ReferenceSet],
    *,
    screen: ContaminationConfig | None = None,
    config: AuditConfig | None = None,
) -> dict[str, Any]:
    """JSON: findings in `items` (digest, text), recall on planted positives, false alarms, and whether it all certifies.

    Raises UserError without references: nothing would be compared with nothing.
    """
    if not references:
        raise UserError("contamination.references", [], "at least one reference set")
    config = config or AuditConfig()
    built = ContaminationScreen(references, screen)
    planted = _positives(built, config)
    alarms = _negatives(built, config)
    tasks = _tasks(built, items)
    faults = [*_faults(planted, alarms, config)]
    if not tasks["screened"]:
        faults.append("no task was screened, so there is nothing to certify")
    if tasks["matched"]:
        faults.append(f"{len(tasks['matched'])} of {tasks['screened']} tasks match a reference")
    return {
        "screen": built.digest,
        "rule": built.rule,
        "config": asdict(config),
        "references": [
            {"name": found.name, "digest": found.digest, "problems": found.problems, "items": len(found.items)}
            for found in built.references
        ],
        "references_too_short_to_judge": built.too_short,
        "indexed": built.sizes(),
        "planted": planted,
        "negatives": alarms,
        "tasks": tasks,
        "certified": not faults,
        "faults": faults,
    }


@dataclass(frozen=True)
class _Result:
    plant: Plant
    hit: bool
    by_lsh: bool
    unjudged: bool
    """Missed, and the planted part is too short for any rule but the exact one."""

    @classmethod
    def of(cls, screen: ContaminationScreen, plant: Plant) -> _Result:
        matches = [match for match in screen.findings(plant.text).rejecting if _same(plant, match)]
        unjudged = not matches and plant.view not in screen.findings(plant.core).judged
        return cls(plant, bool(matches), any("lsh" in match.routes for match in matches), unjudged)


def _same(plant: Plant, match: Match) -> bool:
    return (match.reference, match.problem) == (plant.reference, plant.problem)


def _positives(screen: ContaminationScreen, config: AuditConfig) -> dict[str, Any]:
    """Recall by kind, and within a kind by length."""
    groups: dict[str, list[_Result]] = {}
    for plant in positives(screen.references, seed=config.seed, per_kind=config.per_kind):
        groups.setdefault(plant.kind, []).append(_Result.of(screen, plant))
    return {kind: _recall(results) | {"by_length": _by_length(results)} for kind, results in groups.items()}


def _by_length(results: Sequence[_Result]) -> dict[str, Any]:
    lengths = {length: [result for result in results if result.plant.length == length] for length in LENGTHS}
    return {length: _recall(chosen) for length, chosen in lengths.items() if chosen}


def _recall(results: Sequence[_Result]) -> dict[str, Any]:
    found, unjudged = sum(result.hit for result in results), sum(result.unjudged for result in results)
    judged = len(results) - unjudged
    return {
        "planted": len(results),
        "found": found,
        "too_short_to_judge": unjudged,
        "recall": found / judged if judged else None,
        "interval": asdict(wilson(found, judged)) if judged else None,
        "found_by_lsh": sum(result.by_lsh for result in results),
        "missed": [result.plant.problem for result in results if not result.hit and not result.unjudged],
    }


def _negatives(screen: ContaminationScreen, config: AuditConfig) -> dict[str, Any]:
    groups: dict[str, list[bool]] = {}
    for plant in negatives(screen.references, seed=config.seed, per_kind=config.per_kind):
        groups.setdefault(plant.kind, []).append(bool(screen.findings(plant.text).rejecting))
    return {kind: {"planted": len(hits), "matched": sum(hits), "rate": sum(hits) / len(hits)} for kind, hits in groups.items()}


def _tasks(screen: ContaminationScreen, items: Iterable[tuple[Digest, str]]) -> dict[str, Any]:
    started, screened = time.perf_counter(), 0
    matched: list[dict[str, object]] = []
    review: list[dict[str, object]] = []
    too_short: list[Digest] = []
    for digest, text in items:
        screened += 1
        findings = screen.findings(text)
        if findings.matches:
            best = findings.matches[0]
            (matched if best.rejects else review).append({"task": digest, **asdict(best), "routes": list(best.routes)})
        elif findings.too_short:
            too_short.append(digest)
    seconds = time.perf_counter() - started
    return {
        "screened": screened,
        "matched": matched,
        "review": review,
        "too_short_to_judge": too_short,
        "seconds": seconds,
        "documents_per_second": screened / seconds if screened else None,
    }


def _faults(planted: dict[str, Any], alarms: dict[str, Any], config: AuditConfig) -> Iterable[str]:
    """Why the certificate fails, one line each: where chance (95 %) does not explain what is short of the rule."""
    for kind, result in planted.items():
        total, judged = result["planted"], result["planted"] - result["too_short_to_judge"]
        if not judged or wilson(result["found"], judged).high < config.recall_floor:
            yield f"planted, {kind}: found {result['found']} of {judged} long enough to judge, under {config.recall_floor}"
        if wilson(judged, total).high < config.coverage_floor:
            yield f"planted, {kind}: {judged} of {total} are long enough to judge, under {config.coverage_floor}"
    if not planted:
        yield "nothing was planted, so nothing shows what the screen would find"
    for kind, result in alarms.items():
        if wilson(result["matched"], result["planted"]).low > config.false_alarms:
            yield f"negatives, {kind}: {result['matched']} of {result['planted']} match, over {config.false_alarms}"
