"""The nightly flow: fetch, generate, validate, screen, split, warm start, assess, accept, report.

Each stage asks the registry what is done already, so a flow that was killed and started again for the same date ends
with the same digests. Prefect sees one task a shard, never one a candidate, and digests, never payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import ThreadPoolTaskRunner

from factory.core.digest import Digest
from factory.core.errors import FactoryError
from factory.flows import assessing, making, policy_line, screening, splitting
from factory.flows.night import SHARDS_AT_ONCE, Night, Silent
from factory.flows.sections import check_settings
from factory.flows.workshop import Workshop
from factory.settings import Settings, load_settings
from registry.runs import RunState


@task(name="shard", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def shard_task(name: str, work: Callable[[], Any]) -> Any:
    """One shard of one stage."""
    return work()


@flow(
    name="nightly",
    validate_parameters=False,
    persist_result=False,
    task_runner=ThreadPoolTaskRunner(max_workers=SHARDS_AT_ONCE),  # type: ignore[arg-type]
)
def nightly(
    config: str | None = None,
    data: str | None = None,
    day: str | None = None,
    settings: Settings | None = None,
    progress: Any = None,
) -> dict[str, Any]:
    """Run one night. A deployment gives the paths of settings file and data folder; `day` defaults to today (UTC).

    `progress` is a `Progress`, typed loosely because Prefect makes a schema of the parameters.
    """
    if settings is None:
        settings = load_settings(Path(config) if config else None, **({"data": Path(data)} if data else {}))
    check_settings(settings)
    when = date.fromisoformat(day) if day else datetime.now(UTC).date()
    with Workshop.open(settings) as shop:
        night = Night.begin(shop, when, progress or Silent())
        try:
            summary = _stages(night)
        except FactoryError as error:
            shop.registry.finish_run(night.run.id, RunState.FAILED, f"{type(error).__name__}: {error}")
            raise
        state = RunState.STOPPED if night.stopped else RunState.FINISHED
        shop.registry.finish_run(night.run.id, state, night.stopped)
        return {"run": night.run.id, "state": state.value, "reason": night.stopped, **summary}


def _stages(night: Night) -> dict[str, Any]:
    _single(night, "sandboxes", lambda: making.look_at_sandboxes(night))
    _single(night, "fetch", lambda: making.fetch(night))
    digests = _made(night)
    record: dict[str, Any] = {}
    with night.timed("judge again", record):
        record |= making.judge_again(night, digests)
    _single(night, "screen", lambda: screening.screen(night, digests))
    rejected = screening.judge(night, digests)
    _single(night, "split", lambda: splitting.split(night, digests))
    held = splitting.withheld(night.shop, digests)
    _single(night, "warm start", lambda: night.once("warm start", partial(_policy, night, held)))
    accepted = _placed(night, digests)
    return {"candidates": len(digests), "rejected": rejected, **accepted}


def _made(night: Night) -> list[Digest]:
    """Digests in the order of the series, whatever order the shards ended in."""
    wanted = making.shards(night)
    night.progress.stage("generate and validate", len(wanted))
    futures = [shard_task.submit(one.name, _advancing(night, partial(making.make, night, one))) for one in wanted]
    for future in futures:
        future.wait()  # no shard may still be at work when another one's error closes what they share
    made = [future.result() for future in futures]
    return list(dict.fromkeys(digest for some in made for digest in some))


def _placed(night: Night, digests: Sequence[Digest]) -> dict[str, Any]:
    """Assess in this thread (the engine is one) and accept what stands."""
    shop = night.shop
    policy = shop.registry.latest_policy(shop.settings.policy.line)
    if policy is None:
        return {"accepted": 0, "states": {}}
    size = max(1, assessing.EPISODES // shop.settings.policy.samples)
    tasks = assessing.wanted(night, digests, policy)
    wanted = [tasks[begin : begin + size] for begin in range(0, len(tasks), size)]
    night.progress.stage("assess", len(wanted))
    if wanted and not night.spent():
        with policy_line.client_of(shop, policy) as client, night.timed("assess", {"policy": policy.version.name}):
            for number, some in enumerate(wanted):
                _run(night, f"assess {number}", partial(assessing.assess, night, some, policy, client))
    record: dict[str, Any] = {}
    with night.timed("accept", record):
        record |= assessing.accept(night, digests, policy.version.line)
    return record


def _policy(night: Night, withheld: frozenset[str]) -> dict[str, Any]:
    return policy_line.ensure_policy(night.shop, seed=night.seed, withheld=withheld, note=night.progress.note)


def _single(night: Night, stage: str, work: Callable[[], Any]) -> None:
    night.progress.stage(stage, 1)
    _run(night, stage, work)


def _run(night: Night, name: str, work: Callable[[], Any]) -> None:
    """One task of the flow in this thread."""
    done: Any = shard_task(name, _advancing(night, work))
    assert not hasattr(done, "__await__")  # a synchronous task called from a synchronous flow


def _advancing(night: Night, work: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        result = work()
        night.progress.advance()
        return result

    return run
