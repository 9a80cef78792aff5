"""Explanations for people: why a task is where it is, how two tasks differ, where a node came from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from factory.core.assessment import Assessment
from factory.core.errors import NotFound
from registry.store import Registry


def explain(registry: Registry, reference: str, *, line: str) -> dict[str, Any]:
    """Status with its history, the evidence of each filter, and the assessments of `line`. Raises NotFound."""
    digest = registry.resolve(reference)
    row = registry.row(digest, line=line)
    assert row is not None  # resolved above
    names = {one.version.weights: one.version.name for one in registry.policies()}
    return {
        "digest": digest,
        "name": row.name,
        "status": row.status.value,
        "reason": row.reason,
        "line": line,
        "state": row.state.value,
        "part": row.part,
        "evidence": [asdict(one) for one in registry.evidence(digest)],
        "assessments": [assessment_record(one, names) for one in registry.assessments(digest, line)],
        "origins": [one.manifest() for one in registry.origins(digest)],
        "history": [
            {"at": one.created_at, "from": one.old and one.old.value, "to": one.new.value, "reason": one.reason, "run": one.run}
            for one in registry.status_log(digest)
        ],
    }


def assessment_record(one: Assessment, names: dict[str, str]) -> dict[str, Any]:
    """k of n with its interval and the policy version that was sampled."""
    interval = one.interval if one.rollouts else None
    return {
        "policy": names.get(one.policy, one.policy),
        "k": one.successes,
        "n": one.rollouts,
        "interval": [interval.low, interval.high] if interval else None,
        "state": one.state.value,
        "masked": one.masked,
        "unparsed": one.unparsed,
        "temperature": one.temperature,
        "backend": one.backend,
        "image": one.image,
    }


def differences(registry: Registry, first: str, second: str) -> dict[str, Any]:
    """Fields of two manifests that differ, dotted, with both values."""
    one, other = (_flat(registry.task(reference).manifest()) for reference in (first, second))
    names = sorted(one.keys() | other.keys())
    return {name: {"first": one.get(name), "second": other.get(name)} for name in names if one.get(name) != other.get(name)}


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {name: item for key in value for name, item in _flat(value[key], f"{prefix}{key}.").items()}
    return {prefix.rstrip("."): value}


def lineage_of(registry: Registry, reference: str) -> dict[str, Any]:
    """Edges on the way up and down from a task, a policy version or any other node."""
    try:
        node = registry.resolve(reference)
    except NotFound:
        node = registry.policy(reference).version.weights
    return {
        "node": node,
        "ancestors": [asdict(edge) for edge in registry.ancestors(node)],
        "descendants": [asdict(edge) for edge in registry.descendants(node)],
    }
