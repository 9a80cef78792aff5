"""Stages that place tasks for the policy line and accept what stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from factory.agent.contract import TokenClient
from factory.agent.formats import load_format
from factory.core.assessment import TaskState, TaskStatus
from factory.core.digest import Digest
from factory.core.trajectory import SAMPLED, Trajectory
from factory.flows.making import checks
from factory.flows.night import Night
from factory.flows.policy_line import folder_of, rollout_config
from factory.flows.screening import SCREENS
from filters.solvability import SolvabilityConfig
from filters.solvability import assess as assess_tasks
from filters.variance import Seen, due
from registry.policies import PolicyRow
from registry.store import Registry

EPISODES = 512
"""Episodes of one batch of assessments."""


def wanted(night: Night, digests: Sequence[Digest], policy: PolicyRow) -> list[Digest]:
    """Tasks to assess tonight: every one that the line has no assessment of, then those of earlier nights that are due."""
    registry, line = night.shop.registry, policy.version.line
    open_states = (TaskStatus.CANDIDATE, TaskStatus.ACCEPTED)
    fresh = [
        digest
        for digest in digests
        if registry.status(digest) in open_states and registry.state(digest, line) is TaskState.UNASSESSED
    ]
    steps = {one.version.weights: one.version.step for one in registry.policies(line)}
    known = [row.digest for row in registry.query(status=TaskStatus.ACCEPTED, line=line) if row.n]
    seen = [Seen(assessment=one, step=steps[one.policy]) for digest in known for one in registry.assessments(digest, line)]
    return fresh + due(known, seen, step=policy.version.step, seed=night.seed)


def assess(night: Night, digests: Sequence[Digest], policy: PolicyRow, client: TokenClient) -> dict[str, Any] | None:
    """Roll out one batch of tasks and store assessments and trajectories. None when a budget is used up."""
    if night.spent():
        return None
    shop, settings = night.shop, night.shop.settings.policy
    found = assess_tasks(
        [shop.registry.task(digest) for digest in digests],
        client=client,
        format=load_format(folder_of(shop, policy)),
        backend=shop.backend,
        blobs=shop.blobs,
        version=policy.version,
        n=settings.samples,
        seed=night.seed,
        config=SolvabilityConfig(rollout=rollout_config(shop, held_out=False)),
    )
    night.budget.sampled(sum(owner in SAMPLED for one in found.trajectories for owner in one.tokens.owners))
    store_once(shop.registry, found.trajectories, purpose="assess", run=night.run.id)
    shop.registry.add_assessments(found.assessments, run=night.run.id)
    broken = [(digest, TaskStatus.QUARANTINED, f"solvability: {reason}") for digest, reason in found.invalid.items()]
    shop.registry.set_status_many(broken, run=night.run.id)
    return {"assessed": len(found.assessments), "masked_share": found.masked_share, "quarantined": len(broken)}


def store_once(registry: Registry, trajectories: Sequence[Trajectory], *, purpose: str, run: str) -> None:
    """Store rollouts but those of tasks that this policy version rolled out for `purpose` in this run.

    A start that was killed after storing them, and before what it concluded from them, is followed by one that does both.
    """
    versions = {one.policies[-1] for one in trajectories if one.policies}
    held = {row.task for name in versions for row in registry.trajectories(run=run, purpose=purpose, policy=name)}
    registry.add_trajectories([one for one in trajectories if one.task not in held], purpose=purpose, run=run)


def accept(night: Night, digests: Sequence[Digest], line: str) -> dict[str, Any]:
    """Accept every assessed candidate that every filter of its kind has passed; returns counts by state."""
    registry = night.shop.registry

    def stands(digest: Digest) -> bool:
        said = {one.filter: one.passed for one in registry.evidence(digest)}
        return all(said.values()) and checks(registry.task(digest).kind) | SCREENS <= set(said)

    ready = [
        digest
        for digest in digests
        if registry.status(digest) is TaskStatus.CANDIDATE
        and registry.state(digest, line) is not TaskState.UNASSESSED
        and stands(digest)
    ]
    registry.set_status_many([(digest, TaskStatus.ACCEPTED, "") for digest in ready], run=night.run.id)
    states = Counter(registry.state(digest, line).value for digest in digests if registry.status(digest) is TaskStatus.ACCEPTED)
    return {"accepted": sum(states.values()), "states": dict(states)}
