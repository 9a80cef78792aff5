"""Rollouts: many episodes in lock-step, one batch of samples a turn.

Every live episode is sampled in one call, then every environment takes its step in a pool of
threads, then the next turn begins. So no batch depends on how long an environment took: the same
requests give the same trajectories. Episodes that end are graded in the pool while others go on. Where the policy is
sampled elsewhere, sandboxes are opened meanwhile, so that no first action waits for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Literal

from factory.agent.contract import ActionFormat, Sampling, TokenClient
from factory.agent.environment import Environment, Grade, Step
from factory.agent.episode import Episode, RolloutRequest
from factory.agent.grading import SharedGrade
from factory.core.blobs import BlobStore
from factory.core.digest import Digest, digest_of
from factory.core.errors import SandboxError
from factory.core.outcome import OutcomeKind, Termination
from factory.core.task import Task
from factory.core.trajectory import Tokens, Trajectory
from sandboxes.contract import Backend
from sandboxes.pool import PrefetchingBackend
from sandboxes.verification.grade import grade

__all__ = ["RolloutConfig", "RolloutRequest", "rollout"]


@dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """How episodes are run."""

    sampling: Sampling = field(default_factory=Sampling)
    invalid_calls: Literal["continue", "end"] = "continue"
    """What follows an answer that is no valid call: the policy is told and goes on, or the episode ends and is graded."""
    max_context: int = 2048
    """Most tokens of one sequence that the client takes, prompt and completion together."""
    workers: int = 4
    """Threads that step and grade environments."""
    episodes: int = 512
    """Most episodes (and so sandboxes) alive at once; more requests run in successive waves."""
    retries: int = 1
    """How often an episode that met a failure of the infrastructure is begun again before it stays masked."""
    held_out: bool = True
    """Whether held-out verifiers run too (their verdicts are recorded, never rewarded)."""
    share_verdicts: bool = True
    """Whether episodes of one wave that left equal trees in equal environments share one run of a verifier."""


def rollout(
    requests: Sequence[RolloutRequest],
    *,
    client: TokenClient,
    format: ActionFormat,
    backend: Backend,
    blobs: BlobStore,
    config: RolloutConfig,
    grade: Grade = grade,
) -> list[Trajectory]:
    """Run every request to its end; trajectories in the order of `requests`, the masked ones among them.

    `grade` runs the verifiers; pass a SharedGrade of your own to share verdicts over several calls.
    Raises PolicyError when the client failed as a whole; then every sandbox is closed and nothing is returned.
    """
    trajectories: list[Trajectory] = []
    for begin in range(0, len(requests), config.episodes):
        wave = _Wave(client, format, backend, blobs, config, grade)
        trajectories.extend(wave.run(requests[begin : begin + config.episodes]))
    return trajectories


class _Wave:
    """Episodes that live at the same time."""

    def __init__(
        self, client: TokenClient, format: ActionFormat, backend: Backend, blobs: BlobStore, config: RolloutConfig, grade: Grade
    ) -> None:
        self.client, self.format, self.backend, self.blobs, self.config = client, format, backend, blobs, config
        share = config.share_verdicts and not isinstance(grade, SharedGrade)
        self.grade = SharedGrade(grade) if share else grade
        self.facts: dict[int, _TaskFacts] = {}

    def run(self, requests: Sequence[RolloutRequest]) -> list[Trajectory]:
        """Attempt every request; those that end masked are attempted again, together, up to the configured times."""
        for request in requests:
            if id(request.task) not in self.facts:
                self.facts[id(request.task)] = _TaskFacts.of(request.task, self.backend)
        ended: dict[int, tuple[Episode, int]] = {}
        pending = dict(enumerate(requests))
        for attempt in range(self.config.retries + 1):
            episodes = self._attempt(list(pending.values()))
            ended |= {number: (episode, attempt) for number, episode in zip(pending, episodes, strict=True)}
            pending = {number: request for number, request in pending.items() if _masked(ended[number][0])}
            if not pending:
                break
        return [self._record(*ended[number]) for number in range(len(requests))]

    def _attempt(self, requests: list[RolloutRequest]) -> list[Episode]:
        openings = {id(request.task): self.format.opening(request.task) for request in requests}
        ahead = PrefetchingBackend(self.backend)
        episodes = [self._begin(request, openings[id(request.task)], ahead) for request in requests]
        live, finishing = episodes, []
        try:
            if self.client.elsewhere:
                for request in requests:
                    ahead.prefetch(request.task.environment, self.blobs)
            with ThreadPoolExecutor(self.config.workers, thread_name_prefix="episode") as pool:
                while live:
                    self._turn(live, pool)
                    finishing += [
                        pool.submit(episode.finish, held_out=self.config.held_out) for episode in live if episode.over
                    ]
                    live = [episode for episode in live if not episode.over]
            for future in finishing:
                future.result()
        finally:
            for episode in episodes:
                episode.close()
            ahead.drop()
        return episodes

    def _begin(self, request: RolloutRequest, opening: Tokens, backend: Backend) -> Episode:
        environment = Environment(request.task, backend, self.blobs, grade=self.grade)
        return Episode(request, opening, environment, self.format)

    def _turn(self, live: list[Episode], pool: ThreadPoolExecutor) -> None:
        """One turn of every live episode."""
        config = self.config
        asked = [(episode, request) for episode in live if (request := episode.ask(config.sampling, config.max_context))]
        if not asked:
            return
        started = perf_counter()
        completions = self.client.complete(
            [request for _, request in asked], temperature=config.sampling.temperature, stop=self.format.stop
        )
        share = (perf_counter() - started) / len(asked)
        for (episode, _), completion in zip(asked, completions, strict=True):
            episode.take(completion, share, config.invalid_calls)
        steps: list[tuple[Episode, float, Future[Step | Exception]]] = [
            (episode, episode.environment.used_s, pool.submit(episode.step)) for episode, _ in asked if not episode.over
        ]
        for episode, before, future in steps:
            episode.after(future.result(), episode.environment.used_s - before, config.invalid_calls)

    def _record(self, episode: Episode, attempt: int) -> Trajectory:
        if _masked(episode) and self.config.retries:
            outcome = episode.outcome
            assert outcome is not None
            fault = f"{outcome.reason.value} at each of {attempt + 1} attempts, last: {outcome.fault}"
            episode.outcome = replace(outcome, reason=Termination.RETRIES_EXHAUSTED, fault=fault)
        facts = self.facts[id(episode.request.task)]
        return episode.trajectory(
            policy=self.client.version.name,
            temperature=self.config.sampling.temperature,
            task=facts.task,
            environment=facts.environment,
            image=facts.image,
            attempt=attempt,
        )


@dataclass(frozen=True, kw_only=True)
class _TaskFacts:
    """Digests of one task, computed once for all its rollouts."""

    task: Digest
    environment: Digest
    image: Digest
    """Empty where the back end does not have the image: then its episodes are masked."""

    @classmethod
    def of(cls, task: Task, backend: Backend) -> _TaskFacts:
        try:
            image = backend.resolve(task.environment.image).digest
        except SandboxError:
            image = ""
        return cls(task=task.digest, environment=digest_of(task.manifest()["environment"]), image=image)


def _masked(episode: Episode) -> bool:
    return episode.outcome is not None and episode.outcome.kind is OutcomeKind.MASKED
