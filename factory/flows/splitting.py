"""Stage that seals the holdout on the first night, and lets later candidates join where their keys allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from factory.core.assessment import TaskStatus
from factory.core.digest import Digest
from factory.core.errors import NotFound
from factory.flows.night import Night
from factory.flows.workshop import Workshop
from filters.splits import Member, SplitConfig, plan_split


def split_config(shop: Workshop) -> SplitConfig:
    """What is held out: the settings' own, and what the generators set apart."""
    settings = shop.settings
    repository = shop.repository.apart if settings.generate.repository else ()
    families = (*shop.terminal.apart, *shop.database.apart)
    return SplitConfig(compositions=settings.split.compositions, apart_families=families, apart_repositories=repository)


def split(night: Night, digests: Sequence[Digest]) -> None:
    """Give every candidate that is not rejected its part of the settings' split."""

    def work() -> dict[str, Any]:
        registry, name = night.shop.registry, night.shop.settings.split.name
        members = [
            Member.of(registry.candidate(digest), registry.keys(digest))
            for digest in digests
            if registry.status(digest) is not TaskStatus.REJECTED
        ]
        try:
            registry.split(name)
        except NotFound:
            return _seal(night, name, members)
        held = registry.key_parts(name, {key for member in members for key in member.keys})
        plan = plan_split(members, split_config(night.shop), sealed=held)
        registry.assign_many(name, sorted(plan.parts))
        return {"split": name, "joined": len(plan.parts), "left_out": len(plan.unplaced)}

    night.once("split", work)


def _seal(night: Night, name: str, members: Sequence[Member]) -> dict[str, Any]:
    plan = plan_split(members, split_config(night.shop))
    if not plan.parts:
        return {"split": name, "sealed": {}}
    sealed = night.shop.registry.seal_split(name, plan.parts)
    return {"split": name, "sealed": dict(Counter(sealed.parts)), "missing": plan.missing}


def withheld(shop: Workshop, digests: Sequence[Digest]) -> frozenset[str]:
    """Split keys of the holdout: no demonstration may carry any of them."""
    registry, name = shop.registry, shop.settings.split.name
    keys = {key for digest in digests for key in registry.keys(digest)}
    try:
        parts = registry.key_parts(name, keys)
    except NotFound:
        return frozenset()
    return frozenset(key for key, part in parts.items() if part != "train")
