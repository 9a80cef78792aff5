"""Every task against the references: what matches, what was read, what was not, and what was too short."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from factory.core.digest import Digest
from factory.core.errors import FactoryError
from factory.core.task import Candidate
from filters.contamination.shipped import OWN, TOGETHER, Judgement, TaskScreen

Item = tuple[Digest, Callable[[], Candidate]]
"""A task's digest, and what loads it; it may raise any FactoryError, or OSError from the store."""
SHOWN = 20
"""Most tasks or files that any list names."""
LISTS = ("matched", "review", "not_screened", "too_short_to_judge", "unread")
"""What is listed: `unread` are files of tasks' own trees, each content once."""


@dataclass
class _Survey:
    counts: Counter[str] = field(default_factory=Counter)
    lists: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in LISTS})
    files: Counter[str] = field(default_factory=Counter)
    unread: Counter[tuple[str, str]] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    named: set[Digest] = field(default_factory=set)

    def listed(self, name: str, record: object) -> None:
        """Count one more, and name it among the first."""
        self.counts[name] += 1
        if len(self.lists[name]) < SHOWN:
            self.lists[name].append(record)

    def add(self, digest: Digest, judgement: Judgement) -> None:
        self.counts["screened"] += 1
        self.counts["too_short_without_files"] += _said_too_short(judgement)
        self.judged.update(judgement.judged)
        for tree, number in judgement.screened.items():
            self.files[_tree(tree)] += number
        for place, why in judgement.unread:
            self.unread[_tree(place.tree), why] += 1
            if place.tree == OWN and place.content not in self.named:
                self.named.add(place.content)
                self.listed("unread", {"task": digest, "file": str(place), "why": why})
        if judgement.found:
            where, best = judgement.found[0]
            self.listed("matched" if best.rejects else "review", {"task": digest, "in": where, **best.record()})
        if judgement.too_short:
            self.listed("too_short_to_judge", digest)


def survey(screen: TaskScreen, items: Iterable[Item]) -> dict[str, Any]:
    """JSON: counts over all `items`, and the first of each list. A task that cannot be read is listed and counted apart."""
    started, cpu, found = time.perf_counter(), time.process_time(), _Survey()
    for digest, load in items:
        try:
            judgement = screen.judge(load())
        except (FactoryError, OSError) as error:
            found.listed("not_screened", {"task": digest, "fault": f"{type(error).__name__}: {error}"})
        else:
            found.add(digest, judgement)
    screened, seconds = found.counts["screened"], time.perf_counter() - started
    return {
        "screened": screened,
        "counts": {name: found.counts[name] for name in (*LISTS, "too_short_without_files")},
        "judged_share": 1 - found.counts["too_short_to_judge"] / screened if screened else None,
        "judged": dict(found.judged),
        "files": dict(found.files),
        "different_files": screen.files,
        "unread_files": [{"in": tree, "why": why, "files": number} for (tree, why), number in sorted(found.unread.items())],
        **found.lists,
        "seconds": seconds,
        "cpu_seconds": time.process_time() - cpu,
        "documents_per_second": screened / seconds if screened else None,
    }


def _said_too_short(judgement: Judgement) -> bool:
    """Whether text, instruction and solution are each too short, so that only the files make the task judged."""
    return all(findings.too_short for name, findings in judgement.texts.items() if name != TOGETHER)


def _tree(name: str) -> str:
    """Mounts are counted as one: each lock of dependencies has a tree of its own."""
    return "mounts" if name.startswith("/") else name
