"""What a screen finds of what is planted: as texts, inside the files of tasks, and where nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from factory.core.statistics import wilson
from filters.contamination.normalise import words
from filters.contamination.planted import EXACT, LENGTHS, Plant, negatives, positives, short_positives
from filters.contamination.planting import PLACES, Planter
from filters.contamination.screen import ContaminationScreen, Match
from filters.contamination.shipped import TaskScreen


@dataclass(frozen=True)
class _Result:
    plant: Plant
    hit: bool
    by_lsh: bool
    unjudged: bool
    """Missed, and the planted part is too short for any rule but the exact one."""

    @classmethod
    def of(cls, screen: ContaminationScreen, plant: Plant, matches: Sequence[Match]) -> _Result:
        found = [match for match in matches if match.rejects and _same(plant, match)]
        unjudged = not found and plant.view != EXACT and plant.view not in screen.findings(plant.core).judged
        return cls(plant, bool(found), any("lsh" in match.routes for match in found), unjudged)


def recall_of_texts(screen: ContaminationScreen, *, seed: int, per_kind: int) -> dict[str, Any]:
    """JSON: recall by kind, and within a kind by length, of plants that are the whole of a text."""
    return _by_kind(
        [_Result.of(screen, plant, screen.findings(plant.text).matches) for plant in _plants(screen, seed, per_kind)]
    )


def recall_in_files(screen: ContaminationScreen, *, seed: int, per_kind: int) -> dict[str, Any]:
    """JSON: recall by place, and within a place by kind and length, of plants in the files of tasks: the whole way."""
    planter = Planter(seed)
    against = TaskScreen(screen, planter.blobs)
    plants = _plants(screen, seed, per_kind)
    found = {}
    for place in PLACES:
        judgements = (against.judge(planter.candidate(plant, place)) for plant in plants)
        results = [
            _Result.of(screen, plant, [match for _, match in one.found]) for plant, one in zip(plants, judgements, strict=True)
        ]
        found[place] = _recall(results) | {"by_length": _by_length(results), "by_kind": _by_kind(results)}
    return found


def false_alarms(screen: ContaminationScreen, *, seed: int, per_kind: int) -> dict[str, Any]:
    """JSON: how many planted negatives of each kind match."""
    groups: dict[str, list[bool]] = {}
    for plant in negatives(screen.references, seed=seed, per_kind=per_kind):
        groups.setdefault(plant.kind, []).append(bool(screen.findings(plant.text).rejecting))
    return {kind: {"planted": len(hits), "matched": sum(hits), "rate": sum(hits) / len(hits)} for kind, hits in groups.items()}


def _plants(screen: ContaminationScreen, seed: int, per_kind: int) -> list[Plant]:
    """Every disguise, and what only exact forms can find (of the length from which values inside files are compared)."""
    short = [one for one in screen.too_short.values() if len(words(one[1].text)) >= screen.config.minimum_value]
    return [
        *positives(screen.references, seed=seed, per_kind=per_kind),
        *short_positives(short, seed=seed, most=per_kind),
    ]


def _same(plant: Plant, match: Match) -> bool:
    return (match.reference, match.problem) == (plant.reference, plant.problem)


def _by_kind(results: Sequence[_Result]) -> dict[str, Any]:
    kinds: dict[str, list[_Result]] = {}
    for result in results:
        kinds.setdefault(result.plant.kind, []).append(result)
    return {kind: _recall(chosen) | {"by_length": _by_length(chosen)} for kind, chosen in kinds.items()}


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
