"""Splits: which tasks train and which are held out, by connected components over shared keys.

Two holdouts are planned apart: compositions (known skills in new orders and with new names) and whole families
or repositories that are never trained on. A component goes to one part whole, so no part shares a key with another.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from factory.core.digest import Digest
from factory.core.errors import SplitViolation, UserError
from factory.core.streams import stream
from factory.core.task import Candidate, repository_key

logger = logging.getLogger(__name__)

TRAIN = "train"
COMPOSITIONS = "holdout-compositions"
FAMILIES = "holdout-families"


@dataclass(frozen=True, kw_only=True)
class Member:
    """What a split needs to know of a task."""

    task: Digest
    keys: tuple[str, ...]
    families: tuple[str, ...]

    @classmethod
    def of(cls, candidate: Candidate, keys: Iterable[str] = ()) -> Member:
        """A candidate with its own keys and further ones (its near-duplicate clusters)."""
        return cls(task=candidate.task.digest, keys=(*candidate.keys.keys, *keys), families=candidate.families)


@dataclass(frozen=True, kw_only=True)
class SplitConfig:
    """What is held out."""

    compositions: float = 0.2
    """Least size of the holdout of compositions: below 1 a share of all tasks, from 1 on a number of tasks."""
    apart_families: tuple[str, ...] = ()
    """Families never trained on."""
    apart_repositories: tuple[str, ...] = ()
    """Repositories never trained on, by name, in any spelling."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.compositions < 0 or (self.compositions > 1 and self.compositions != int(self.compositions)):
            raise UserError("split.compositions", self.compositions, "a share below 1 or a whole number of tasks")


@dataclass(frozen=True, kw_only=True)
class SplitPlan:
    """Part by task. Tasks that belong on a sealed holdout's side are in no part."""

    parts: Mapping[Digest, str]
    unplaced: Mapping[Digest, str] = field(default_factory=dict)
    """Why a task is in no part, one line each."""
    missing: int = 0
    """How many tasks the holdout of compositions is short of what was asked for."""

    @property
    def sizes(self) -> dict[str, int]:
        """Tasks in each part."""
        return dict(sorted(Counter(self.parts.values()).items()))


def plan_split(
    members: Sequence[Member], config: SplitConfig | None = None, *, sealed: Mapping[str, str] | None = None
) -> SplitPlan:
    """Plan a split, or what joins one: `sealed` is the part of every key of the sealed split, empty for a new one.

    A sealed holdout never changes: tasks with one of its keys, or of a family or repository set apart, are left
    out; all others train. The same members in any order give the same plan. Raises SplitViolation when two parts would
    share a key (which means that the plan is wrong), UserError for a task without keys.
    """
    config = config or SplitConfig()
    ordered = sorted({member.task: member for member in members}.values(), key=lambda member: member.task)
    for member in ordered:
        if not member.keys:
            raise UserError("split.keys", member.task, "at least one split key for each task")
    plan = _join(ordered, config, sealed) if sealed else _new(ordered, config)
    _check_disjoint(ordered, plan.parts, sealed or {})
    return plan


def components(members: Sequence[Member]) -> list[list[Member]]:
    """Members connected by shared keys, each component and the list of them in the order of `members`."""
    parent = list(range(len(members)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    holder: dict[str, int] = {}
    for number, member in enumerate(members):
        for key in member.keys:
            parent[root(number)] = root(holder.setdefault(key, number))
    found: dict[int, list[Member]] = {}
    for number, member in enumerate(members):
        found.setdefault(root(number), []).append(member)
    return list(found.values())


def _new(members: Sequence[Member], config: SplitConfig) -> SplitPlan:
    parts: dict[Digest, str] = {}
    known: list[list[Member]] = []
    for component in components(members):
        if any(_apart(member, config) for member in component):
            parts |= {member.task: FAMILIES for member in component}
        else:
            known.append(component)
    wanted = int(config.compositions) if config.compositions >= 1 else round(config.compositions * len(members))
    chosen = _compositions(known, wanted, config.seed)
    for number, component in enumerate(known):
        parts |= {member.task: COMPOSITIONS if number in chosen else TRAIN for member in component}
    missing = max(0, wanted - sum(len(known[number]) for number in chosen))
    if missing:
        logger.warning("the holdout of compositions is %d tasks short of %d: its skills must also train", missing, wanted)
    return SplitPlan(parts=dict(sorted(parts.items())), missing=missing)


def _compositions(known: Sequence[Sequence[Member]], wanted: int, seed: int) -> set[int]:
    """Numbers of the components that are held out: enough tasks, no skill that does not train, none to spare."""
    skills = [{family for member in component for family in member.families} for component in known]
    left = Counter(skill for some in skills for skill in some)
    eligible = [number for number, component in enumerate(known) if _composed(component)]
    stream(seed, "split", "compositions").shuffle(eligible)
    chosen: set[int] = set()
    size = 0
    for number in eligible:
        if size < wanted and all(left[skill] > 1 for skill in skills[number]):
            chosen.add(number)
            size += len(known[number])
            left.subtract(skills[number])
    for number in sorted(chosen, key=lambda number: len(known[number])):
        if size - len(known[number]) >= wanted:
            chosen.remove(number)
            size -= len(known[number])
    return chosen


def _composed(component: Sequence[Member]) -> bool:
    """Compositions of two skills and more only: single skills train, and a held-out repository is a family of its own."""
    return all(any(key.startswith("signature:") and "+" in key for key in member.keys) for member in component)


def _join(members: Sequence[Member], config: SplitConfig, sealed: Mapping[str, str]) -> SplitPlan:
    parts: dict[Digest, str] = {}
    unplaced: dict[Digest, str] = {}
    for member in members:
        held = [key for key in member.keys if sealed.get(key, TRAIN) != TRAIN]
        if held:
            unplaced[member.task] = f"its key {held[0]} belongs to {sealed[held[0]]}"
        elif reason := _apart(member, config):
            unplaced[member.task] = f"{reason} is set apart, and the holdout is sealed"
        else:
            parts[member.task] = TRAIN
    return SplitPlan(parts=parts, unplaced=unplaced)


def _apart(member: Member, config: SplitConfig) -> str:
    """Which family or repository sets a member apart; empty when none does."""
    repositories = {repository_key(name) for name in config.apart_repositories}
    found = [*(set(member.families) & set(config.apart_families)), *(set(member.keys) & repositories)]
    return min(found, default="")


def _check_disjoint(members: Sequence[Member], parts: Mapping[Digest, str], sealed: Mapping[str, str]) -> None:
    owners = dict(sealed)
    for member in members:
        if member.task in parts:
            for key in member.keys:
                owner = owners.setdefault(key, parts[member.task])
                if owner != parts[member.task]:
                    raise SplitViolation(f"key {key!r} of task {member.task} is in {owner!r} and {parts[member.task]!r}")
